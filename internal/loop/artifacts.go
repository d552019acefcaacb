package loop

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// Artifacts is the part that keeps the last version of each artifact that the run knows. The log has
// every version.
type Artifacts struct {
	// List has the last version of each artifact of the session, the one saved last at the end.
	List []agent.Artifact `json:"list,omitempty"`
	// Children are those of sub-agents that have ended. Left counts those for which there was no
	// space.
	Children []agent.Artifact `json:"children,omitempty"`
	Left     int              `json:"left,omitempty"`
}

// artifactFrame is what an artifact takes in JSON beside its texts, with the digest.
const artifactFrame = fileFrame + 80

func artifactJSONLen(a agent.Artifact) int {
	return artifactFrame + jsonLen(a.Session) + jsonLen(a.MediaType) + jsonLen(a.Name) + jsonLen(a.Run) + jsonLen(a.Agent) + jsonLen(a.Call)
}

func artifactsJSONLen(list []agent.Artifact) (n int) {
	for _, a := range list {
		n += artifactJSONLen(a)
	}
	return n
}

// inherit takes over what earlier runs of the session have saved.
func (a *Artifacts) inherit(list []agent.Artifact) { a.List = slices.Clone(list) }

// find returns the last version of an artifact; its zero value if the run knows none.
func (a *Artifacts) find(name string) (last agent.Artifact) {
	if i := slices.IndexFunc(a.List, func(o agent.Artifact) bool { return o.Name == name }); i >= 0 {
		return a.List[i]
	}
	return last
}

// hasSpace reports whether the list has space for another version of an artifact, or for a new one.
func (a *Artifacts) hasSpace(next agent.Artifact) bool {
	last := a.find(next.Name)
	n := artifactsJSONLen(a.List) + artifactJSONLen(next)
	if last.Version > 0 {
		n -= artifactJSONLen(last)
	}
	return n <= artifactShare && (last.Version > 0 || len(a.List) < agent.MaxArtifacts)
}

// save adds a version. States share the list, so it is copied.
func (a *Artifacts) save(next agent.Artifact) {
	a.List = slices.DeleteFunc(slices.Clone(a.List), func(o agent.Artifact) bool { return o.Name == next.Name })
	a.List = append(a.List, next)
}

// addChild adds what a sub-agent and those below it have saved. The outcome comes from another worker,
// so an artifact of any other session is left out.
func (a *Artifacts) addChild(session string, o *agent.Outcome) {
	all, size := slices.Clone(a.Children), artifactsJSONLen(a.Children)
	for _, one := range o.Artifacts {
		if !isBelow(one.Session, session) || one.Check() != nil {
			continue
		}
		if n := artifactJSONLen(one); len(all) < agent.MaxArtifacts && size+n <= artifactShare {
			all, size = append(all, one), size+n
			continue
		}
		a.Left++
	}
	a.Children, a.Left = all, a.Left+min(max(o.ArtifactsLeft, 0), maxHold)
}

// isBelow reports whether a session is another one, or that of a sub-agent below it.
func isBelow(session, top string) bool {
	return session == top || strings.HasPrefix(session, top+"/")
}

// all returns the artifacts for the outcome.
func (a *Artifacts) all() []agent.Artifact { return slices.Concat(a.List, a.Children) }

// ArtifactsOf returns the artifacts of a sub-agent and those below it. Its outcome in the state has
// none, since sub-agents share a space of their own.
func (e MakeHandoff) ArtifactsOf(session string) (list []agent.Artifact) {
	for _, a := range e.Artifacts {
		if isBelow(a.Session, session) {
			list = append(list, a)
		}
	}
	return list
}

// Foreign reports whether the run has an artifact of another session that its log does not have. known
// are the artifacts that the log has: a fork knows those behind its checkpoint.
func (a *Artifacts) Foreign(session string, known []agent.Artifact) bool {
	return slices.ContainsFunc(a.List, func(one agent.Artifact) bool { return one.Session != session && !slices.Contains(known, one) })
}

// sound reports whether an imported ledger can be that of a session. Artifacts of sub-agents are of
// sessions below it; [Artifacts.Foreign] checks the others.
func (a *Artifacts) sound(session string) bool {
	bad := func(one agent.Artifact) bool { return one.Check() != nil }
	elsewhere := func(one agent.Artifact) bool { return !strings.HasPrefix(one.Session, session+"/") }
	return !slices.ContainsFunc(a.all(), bad) && !slices.ContainsFunc(a.Children, elsewhere) && len(a.List) <= agent.MaxArtifacts && len(a.Children) <= agent.MaxArtifacts &&
		artifactsJSONLen(a.List) <= artifactShare && artifactsJSONLen(a.Children) <= artifactShare && a.Left >= 0
}

// beginArtifacts makes versions count on from the session's highest one if the run does not know
// all artifacts of its session: no version of a name may be there twice.
func (s *step) beginArtifacts() {
	forked := s.Origin.StartPoint != nil && s.Origin.StartPoint.Forked != nil
	if !forked && s.Origin.Start.Carry != agent.CarryReset {
		return
	}
	// The artifacts behind a checkpoint of another session stay there, with their versions.
	if f := s.Origin.StartPoint; forked && f.Forked.Session != s.Session && !f.Forked.DropArtifacts {
		return
	}
	s.Counters.ArtifactFloor = s.Counters.Artifact
}

// saveArtifacts saves what a call has stored as artifacts, and says in its result what came of it.
// Whoever makes the call, the run decides.
func (s *step) saveArtifacts(i int, files []agent.File) {
	if len(files) == 0 {
		return
	}
	var saved, refused []string
	for n, f := range files {
		if n >= agent.MaxFiles {
			refused = append(refused, fmt.Sprintf("%d more: a call saves at most %d", len(files)-n, agent.MaxFiles))
			break
		}
		a, why := s.saveArtifact(i, f)
		if why != "" {
			refused = append(refused, fit(a.Label(), maxQuoted/2)+": "+why)
			continue
		}
		saved = append(saved, fmt.Sprintf("%s version %d", fit(a.Label(), maxQuoted/2), a.Version))
	}
	if s.isFlow() || s.space() < artifactNote { // a note would spoil a flow's result in JSON
		return
	}
	s.Calls.noteArtifacts(i, saved, refused)
}

// saveArtifact saves one version, or says why not. It does not save the bytes that the last version has.
func (s *step) saveArtifact(i int, f agent.File) (a agent.Artifact, why string) {
	c, last := s.Calls.List[i], s.Artifacts.find(f.Name)
	a = agent.Artifact{File: f, Version: max(last.Version, s.Counters.ArtifactFloor) + 1, Run: s.Run, Agent: s.agent(), Call: c.ID}
	switch {
	case f.Session != s.Session || a.Check() != nil:
		return a, "it is no file of this session"
	case last.Digest == f.Digest && last.MediaType == f.MediaType && last.Session == f.Session:
		return last, ""
	case s.waitingFiles() >= maxWaitingFiles:
		return a, fmt.Sprintf("more than %d files wait to be stored", maxWaitingFiles)
	case !s.Artifacts.hasSpace(a):
		return a, fmt.Sprintf("the session has %d artifacts, and no space for more names; save under one of them", len(s.Artifacts.List))
	}
	s.Artifacts.save(a)
	s.Counters.Artifact = max(s.Counters.Artifact, a.Version)
	bytes := frame
	if s.Log.Bytes-s.Log.SealingBytes < sealAt { // sealed soon, as a message with a file is (see recordMessage)
		bytes += sealAt
	}
	s.recordSized(agent.Event{Type: agent.EventArtifactSaved, Artifact: &a}, bytes)
	return a, ""
}

// artifactNote is how much the note about a call's artifacts takes in JSON at most.
const artifactNote = 1 << 10

// noteArtifacts says in a call's result which versions were saved, and what was refused.
func (c *Calls) noteArtifacts(i int, saved, refused []string) {
	text := ""
	if len(saved) > 0 {
		text = "saved: " + strings.Join(saved, ", ")
	}
	if len(refused) > 0 {
		text += "; not saved: " + strings.Join(refused, "; ")
	}
	c.note(i, "["+fit(strings.TrimPrefix(text, "; "), artifactNote-16)+"]", artifactNote)
}
