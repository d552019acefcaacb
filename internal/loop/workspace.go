package loop

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// Workspace is the part that keeps the directory or git worktree that the run has for itself. It is
// zero for a run that works where its parent works.
type Workspace struct {
	// Name is the directory's name; empty until an activity was asked to make it.
	Name string `json:"name,omitempty"`
	// Made means that it is there. Until then the run begins nothing.
	Made bool `json:"made,omitempty"`
	// Ending means that an activity merges, keeps or drops it. Unlogged means that the run has no part
	// in the log, so the end is not recorded.
	Ending   bool `json:"ending,omitempty"`
	Unlogged bool `json:"unlogged,omitempty"`
}

// MakeWorkspaceArgs are the arguments of the activity that makes a run's own workspace. Repeating it
// changes nothing.
type MakeWorkspaceArgs struct {
	Session string              `json:"session"`
	Kind    agent.WorkspaceKind `json:"kind"`
	Name    string              `json:"name"`
	// Base names the parent's own workspace; empty means the worker's.
	Base string `json:"base,omitempty"`
}

// EndWorkspaceArgs are the arguments of the activity that ends a run's own workspace. Repeating it
// changes nothing.
type EndWorkspaceArgs struct {
	MakeWorkspaceArgs
	AtEnd agent.WorkspaceEnd `json:"at_end"`
	// Made means that it is somewhere. Otherwise nobody knows whether the activity made it.
	Made bool `json:"made,omitempty"`
}

// shortWorkspace returns what a parent keeps of a child's workspace. Any worker may have written it.
func shortWorkspace(w *agent.WorkspaceOutcome) *agent.WorkspaceOutcome {
	if w == nil {
		return nil
	}
	b := *w
	b.Kind, b.Name, b.Result = fit(b.Kind, receiptFrame), fit(b.Name, maxName), fit(b.Result, receiptFrame)
	b.Branch, b.Repository, b.Error = fit(b.Branch, maxName), fit(b.Repository, maxWhy), fit(b.Error, maxWhy)
	b.Paths = nil
	for _, path := range w.Paths[:min(len(w.Paths), agent.MaxWorkspacePaths)] {
		b.Paths = append(b.Paths, fit(path, maxWhy))
	}
	return &b
}

// workspaceResult returns what became of the own workspace of a run with an outcome; empty if it had
// none, or has no outcome. Any worker may have written it.
func workspaceResult(o *agent.Outcome) agent.WorkspaceResult {
	if o == nil || o.Workspace == nil {
		return ""
	}
	return fit(o.Workspace.Result, receiptFrame)
}

// ask records that an activity makes the directory.
func (w *Workspace) ask(name string) { w.Name = name }
func (w *Workspace) made()           { w.Made = true }
func (w *Workspace) end()            { w.Ending = true }
func (w *Workspace) unlogged()       { w.Unlogged = true }

// forget records that there is nothing to end, or nothing any more.
func (w *Workspace) forget() { *w = Workspace{Unlogged: w.Unlogged} }

// open reports whether there may be something that has to be ended.
func (w Workspace) open() bool { return w.Name != "" }

// workspaceName returns the name of a run's own workspace: a repeated attempt finds the same one, and
// of the session's name, which others chose, no part is in a path.
func workspaceName(name, session, run string) string {
	sum := sha256.Sum256([]byte(session + "\x00" + run))
	return name + "-" + hex.EncodeToString(sum[:6])
}

// ownWorkspace returns what the parent says about a workspace of the run's own; nil if it has none.
func (s *State) ownWorkspace() *agent.OwnWorkspace {
	if b := s.Parent.Start; b != nil && b.Workspace != nil && b.Workspace.Own != nil {
		return b.Workspace.Own
	}
	return nil
}

// place returns where the run's calls work; nil means the worker's workspace.
func (s *State) place() *wire.Place {
	if s.Parent.Start == nil || s.Parent.Start.Workspace == nil {
		return nil
	}
	p := s.Parent.Start.Workspace.Place
	if s.Workspace.Made {
		p.Dir = s.Workspace.Name
	}
	if p.Dir == "" && len(p.Env) == 0 {
		return nil
	}
	return &p
}

// childWorkspace returns what a sub-agent is started with: the place of this run, its entry's
// variables, and a workspace of its own if the entry has one. It is nil for the worker's workspace.
func (s *State) childWorkspace(own *agent.OwnWorkspace) *wire.ChildWorkspace {
	at := s.place()
	if own == nil && at == nil {
		return nil
	}
	w := &wire.ChildWorkspace{}
	if at != nil {
		w.Place = *at
	}
	if own == nil {
		return w
	}
	if len(own.Env) > 0 {
		env := maps.Clone(w.Env)
		if env == nil {
			env = map[string]string{}
		}
		maps.Copy(env, own.Env)
		w.Env = env
	}
	if own.Kind != "" {
		w.Own = &agent.OwnWorkspace{Kind: own.Kind, AtEnd: own.AtEnd}
	}
	return w
}

// mustMakeWorkspace reports whether the run begins with a workspace of its own, which is not there.
func (s *step) mustMakeWorkspace() bool {
	return s.ownWorkspace() != nil && !s.Workspace.open() && s.End.Stopping == nil
}

// makeWorkspace asks for the run's own workspace. The sources are asked when it is there.
func (s *step) makeWorkspace(sources []string) {
	s.Origin.askLater(sources)
	s.Workspace.ask(workspaceName(s.agent(), s.Session, s.Run))
	s.enterPhase(RunListing)
	s.do(MakeWorkspace{s.workspaceArgs()})
}

func (s *step) workspaceArgs() MakeWorkspaceArgs {
	return MakeWorkspaceArgs{Session: s.Session, Kind: s.ownWorkspace().Kind, Name: s.Workspace.Name, Base: s.Parent.Start.Workspace.Dir}
}

// takeWorkspace handles what comes of the run's own workspace.
func (s *step) takeWorkspace(in Input) error {
	switch in := in.(type) {
	case WorkspaceMade:
		return s.workspaceMade(in)
	case WorkspaceEnded:
		return s.workspaceEnded(in)
	}
	return agent.Errorf(agent.CodeInternal, "the machine knows no input %T", in)
}

// workspaceMade takes the result of [MakeWorkspace].
func (s *step) workspaceMade(in WorkspaceMade) error {
	if s.Phase != RunListing || s.Workspace.Made {
		return s.refuse("no workspace is being made")
	}
	if in.Err != nil {
		s.Workspace.forget()
		s.fail(in.Err)
		return nil
	}
	s.Workspace.made()
	if len(s.Origin.Sources) > 0 {
		s.list(s.Origin.Sources)
		return nil
	}
	s.beginRun()
	return nil
}

// mayEndWorkspace reports whether the run's own workspace can be ended: agents below may work in it,
// or have changes to merge into it.
func (s *step) mayEndWorkspace() bool {
	return s.Phase == RunEnding && s.Workspace.open() && !s.Workspace.Ending && !s.Children.blocksEnd(s.At)
}

func (s *step) endWorkspace() {
	s.Workspace.end()
	s.do(EndWorkspace{EndWorkspaceArgs{
		MakeWorkspaceArgs: s.workspaceArgs(), AtEnd: s.ownWorkspace().Ends(s.End.Outcome.Status), Made: s.Workspace.Made,
	}})
}

// workspaceEnded takes the result of [EndWorkspace], and records the run's end, which names it.
func (s *step) workspaceEnded(in WorkspaceEnded) error {
	if s.Phase != RunEnding || !s.Workspace.Ending {
		return s.refuse("no workspace is being ended")
	}
	s.leaveWorkspace(in.Outcome)
	return nil
}

// leaveWorkspace records the end of a run that had a workspace of its own.
func (s *step) leaveWorkspace(o agent.WorkspaceOutcome) {
	o.Kind, o.Name = s.ownWorkspace().Kind, s.Workspace.Name
	s.Workspace.forget()
	s.End.setWorkspace(o, s.Log.Seq)
	if !s.Workspace.Unlogged {
		s.recordEnd()
	}
}
