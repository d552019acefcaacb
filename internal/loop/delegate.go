package loop

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// subAgentTask has the arguments of a call that starts a sub-agent.
type subAgentTask struct {
	Task       string `json:"task"`
	Context    string `json:"context"`
	Background bool   `json:"background"`
	// Files are names of files of the conversation.
	Files []string `json:"files"`
	// Output is the schema of the answer that a flow needs; a model cannot give one.
	Output json.RawMessage `json:"output"`
}

// delegate starts a child for a call, or rejects the call.
func (s *step) delegate(i int) {
	var w subAgentTask
	c := s.Calls.List[i]
	sub := s.subAgent(c)
	session := s.nextChild(sub.Agent) // a rejected call uses up a number, too: no number is used twice
	refused := ""
	switch err := json.Unmarshal(s.startArguments(c), &w); {
	case err != nil:
		refused = "The arguments do not fit: " + err.Error()
	case w.Task == "":
		refused = "A task is required: set task."
	case s.levelsBelow() < 1:
		refused = "Not started: as many agents stand below one another as limits.depth allows. Do the work yourself."
	case s.budgetView().remaining(wire.ResourceAgents) < 1:
		refused = "Not started: as many agents were started as limits.agents allows. Do the work yourself."
	case s.Children.countNotEnded() >= maxWorking:
		refused = fmt.Sprintf("Not started: %d agents work for you already, or wait. Go on when some have ended.", maxWorking)
	case len(session) > maxSession:
		refused = fmt.Sprintf("Not started: the session's name would be longer than %d bytes.", maxSession)
	}
	var files []agent.File
	if refused == "" {
		files, refused = s.filesToPass(c, w.Files)
	}
	if refused != "" {
		s.setResult(i, agent.CallRejected, refused)
		return
	}
	if s.isFlow() && len(sub.Output) == 0 {
		sub.Output = w.Output
	}
	w.Background = w.Background && s.Spec.Lifecycle // without the lifecycle tools the model could not wait for the child
	s.TaskLoad.start(s.Task, s.startJSONLen(c))
	// Before Children.add: grantFor opens the account last, so it never looks up a child that is
	// not in the list yet. Before awaitChildren: grantFor counts this call among the pending ones.
	grant := s.grantFor(session, sub)
	waits := c.ID
	if w.Background {
		waits = ""
	}
	s.Calls.awaitChildren(i, nil, s.At)
	if s.isFlow() {
		s.Calls.forgetArguments(i)
	}
	s.Children.add(Child{
		Session: session, Agent: sub.Agent, Task: agent.Input{Text: w.Task}.Task(), Call: waits, StartedBy: c.ID, Status: agent.StatusPending, AsOf: s.now(),
	})
	s.recordCallStarted(i)
	s.do(StartChild{
		Session: session, Agent: sub.Agent, Task: w.Task, Context: w.Context, Files: fileParts(files), Limits: sub.Limits, Background: w.Background,
		ChildStart: wire.ChildStart{
			Parent: wire.Parent{Session: s.Session, Run: s.Run, Call: c.ID}, Depth: s.Parent.depth() + 1, Background: w.Background, Outlives: s.isFlow(),
			Ceilings: s.ceilings(sub), Rules: s.Parent.InheritedRules, Labels: s.Labels(), Output: sub.Output, KnownHolds: s.Holds.Known, Holds: s.Holds.forChildren(),
			Grant: grant, MaxDepth: s.levelsBelow() - 1, Principal: s.principal(), Workspace: s.childWorkspace(sub.Workspace),
			Reminders: s.Spec.RemindersBelow(s.Parent.reminders()), ParkUntil: s.parkUntil(c),
		},
	})
}

// backgroundResult answers the call that started a child in the background, once the child has started.
func (s *step) backgroundResult(c Child) {
	i := s.Calls.find(c.StartedBy)
	if i < 0 || s.Calls.List[i].State != CallAwaitingChildren {
		return
	}
	text, err := json.Marshal(struct {
		Child  string       `json:"child"`
		Status agent.Status `json:"status"`
	}{c.Session, c.Status})
	if err != nil {
		text = []byte(c.Session)
	}
	s.setResult(i, agent.CallOK, string(text))
}

// nextChild returns the session of a new child. Its number counts over the session's life.
func (s *step) nextChild(name string) string {
	s.Counters.Child++
	return fmt.Sprintf("%s/%s-%d", s.Session, name, s.Counters.Child)
}

func (s *step) subAgent(c Call) agent.SubAgent {
	if s.Checks.has(c.ID) {
		k := s.currentCheck()
		return agent.SubAgent{Agent: k.Agent, Tools: k.Tools, Limits: k.Limits, Output: agent.VerdictSchema()}
	}
	for _, a := range s.Spec.Agents {
		if a.Tool() == c.Tool {
			return a
		}
	}
	return agent.SubAgent{}
}

// ceilings returns the ceilings of a child's tools: a child may use only tools that its parent has,
// or those that its entry in the parent's agents lists.
func (s *step) ceilings(sub agent.SubAgent) (all [][]string) {
	if b := s.Parent.Start; b != nil {
		all = append(all, b.Ceilings...)
	}
	if len(s.Spec.Ceiling) > 0 {
		all = append(all, s.Spec.Ceiling)
	}
	if len(sub.Tools) > 0 {
		return append(all, sub.Tools)
	}
	if s.isFlow() { // its author decides what is called: no model could reach for more
		return all
	}
	own := []string{allServerTools} // so the list is never empty: an empty one would allow every tool
	for _, t := range s.Spec.Toolset {
		switch t.Executor {
		case "":
			own = append(own, t.Name)
		case agent.ExecutorClient: // a worker below may have a tool of that name, which is another one
			own = append(own, clientToolPrefix+t.Name)
		}
	}
	return append(all, own)
}

// bindsExecution reports whether the run can't continue as new: a new execution would have no log of a
// stateless run, and would miss what needsChildEvents says.
func (s *step) bindsExecution() bool { return s.Log.Unstored || s.needsChildEvents() }

// needsChildEvents reports whether a call of the turn waits for a child, or a child has not begun
// yet. In a new execution Temporal would report neither the child's start nor its result. The server
// cancels a released child when this execution closes, so that happens only if the history is nearly full.
func (s *step) needsChildEvents() bool {
	return s.Calls.count(CallAwaitingChildren) > 0 && !s.isFlow() || s.Children.starting() || s.Children.anyReleased() && !s.NearHistoryLimit
}

// onlyAwaitsSuspendedChildren reports whether the turn waits only for children, and all of these are
// suspended or have ended. A child that waits for a grant counts as working.
func (s *State) onlyAwaitsSuspendedChildren() bool {
	working := func(on string) bool { return !s.Children.endedOrSuspended(on) }
	for _, c := range s.Calls.List {
		switch {
		case c.State == CallDone, c.State == CallPending && s.callWaits(c): // the check that it waits for is in the list
		case c.State != CallAwaitingChildren, slices.ContainsFunc(s.awaitedChildren(c), working):
			return false
		}
	}
	return s.Calls.count(CallAwaitingChildren) > 0
}

// maxNamed is how many sub-agents a refusal names at most.
const maxNamed = 8

// suspendedChildren returns the first maxNamed suspended children that the turn waits for.
func (s *step) suspendedChildren() (names []string) {
	for _, c := range s.Calls.List {
		if c.State != CallAwaitingChildren {
			continue
		}
		for _, on := range s.awaitedChildren(c) {
			if s.Children.endedOrSuspended(on) && !slices.Contains(names, on) && len(names) < maxNamed {
				names = append(names, on)
			}
		}
	}
	return names
}

// waitsForOthers says what a run waits for that its own resume can't bring about.
func (s *step) waitsForOthers() string {
	if children := s.suspendedChildren(); len(children) > 0 {
		return "the run waits for suspended sub-agents; resume or answer " + strings.Join(children, ", ")
	}
	if s.Parent.Start == nil || len(s.budgetReasons()) == 0 {
		return "the run waits for its sub-agents"
	}
	return fmt.Sprintf("the run waits for budget from session %s; answer the request there about its limit", s.Parent.Start.Parent.Session)
}

// awaitsWorkingChild reports whether a child that the turn waits for works.
func (s *State) awaitsWorkingChild() bool {
	return slices.ContainsFunc(s.Calls.List, func(c Call) bool {
		return c.State == CallAwaitingChildren && slices.ContainsFunc(s.awaitedChildren(c), s.Children.isWorking)
	})
}

// awaitedChildren returns the children that a call waits for.
func (s *State) awaitedChildren(c Call) []string {
	if len(c.Children) > 0 {
		return c.Children
	}
	return s.Children.startedBy(c.ID)
}
