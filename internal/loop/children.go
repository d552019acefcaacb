package loop

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Child is a run below this one, as this one has heard of it.
type Child struct {
	Session string `json:"session"`
	Run     string `json:"run,omitempty"`
	Agent   string `json:"agent"`
	Task    string `json:"task"`
	// Call is the call that waits for its result; empty for one in the background.
	Call string `json:"call,omitempty"`
	// By is the call that started it.
	By string `json:"by"`
	// Started tells that it is known to have begun: it can be told something.
	Started    bool              `json:"started,omitempty"`
	Status     agent.Status      `json:"status"`
	Suspension *agent.Suspension `json:"suspension,omitempty"`
	Seq        int64             `json:"seq,omitempty"` // of its last report
	Heard      time.Time         `json:"heard"`
	// Alone tells that it began under an earlier execution of this run: its end is
	// known only if it tells of it, or is looked for.
	Alone bool `json:"alone,omitempty"`
	// Owed is what it has to be told when it has begun.
	Owed []agent.HoldOrder `json:"owed,omitempty"`
	// Outcome is set when it has ended.
	Outcome *agent.Outcome `json:"outcome,omitempty"`
}

// live tells whether a child may still be working.
func (c Child) live() bool { return c.Outcome == nil }

// maxDepth is how many runs may stand above one another.
const maxDepth = 8

// maxWorking is how many runs may stand right below one at once. The server ends a
// workflow's task that tells more than 2,000 others something, and an end, a hold
// or a stop tells all.
const maxWorking = 256

// maxSession bounds a child's session in bytes: it is a workflow's id.
const maxSession = 255

// work is what the model gives a sub-agent.
type work struct {
	Task       string `json:"task"`
	Context    string `json:"context"`
	Background bool   `json:"background"`
}

// delegate gives a call's work to a new run below this one.
func (s *step) delegate(c *Call) {
	var w work
	sub := s.subAgent(c.Tool)
	session := s.nextChild(sub.Agent)
	refused := ""
	switch err := json.Unmarshal(c.Arguments, &w); {
	case err != nil:
		refused = "The arguments do not fit: " + err.Error()
	case w.Task == "":
		refused = "A task is wanted: set task."
	case s.depth()+1 > maxDepth:
		refused = fmt.Sprintf("Not started: agents may stand %d deep below one another.", maxDepth)
	case s.working() >= maxWorking:
		refused = fmt.Sprintf("Not started: %d agents work for you already, or wait. Go on when some have ended.", maxWorking)
	case len(session) > maxSession:
		refused = fmt.Sprintf("Not started: the session's name would be longer than %d bytes.", maxSession)
	}
	if refused != "" {
		s.settle(s.callIndex(c.ID), agent.ToolResult{Call: c.ID, Tool: c.Tool, Status: agent.CallRejected, Text: refused})
		return
	}
	s.forget()
	child := Child{Session: session, Agent: sub.Agent, Task: agent.Input{Text: w.Task}.Task(), By: c.ID, Status: agent.Pending, Heard: s.now()}
	c.State, c.Since = Below, s.At
	if !w.Background {
		child.Call = c.ID
	}
	s.Children = append(s.Children, child)
	s.record(agent.Event{Type: agent.CallStarted, Call: &agent.CallNote{Call: c.ID, Tool: c.Tool}})
	s.start(child, sub, w)
}

func (s *step) start(child Child, sub agent.SubAgent, w work) {
	s.do(StartChild{
		Session: child.Session, Agent: sub.Agent, Task: w.Task, Context: w.Context, Limits: sub.Limits, Background: w.Background,
		Birth: agent.Birth{
			Parent: agent.Parent{Session: s.Session, Run: s.Run, Call: child.By}, Depth: s.depth() + 1, Background: w.Background,
			Ceilings: s.ceilings(sub), Rules: s.inheritedRules(), Output: sub.Output, Heard: s.Heard, Held: s.handedDown(),
		},
	})
}

// nextChild is the session of the next run below this one: its number counts over
// the session's life.
func (s *step) nextChild(name string) string {
	s.Numbers.Child++
	return fmt.Sprintf("%s/%s-%d", s.Session, name, s.Numbers.Child)
}

func (s *step) depth() int {
	if s.Birth == nil {
		return 0
	}
	return s.Birth.Depth
}

func (s *step) subAgent(tool string) agent.SubAgent {
	for _, a := range s.Spec.Agents {
		if a.Tool() == tool {
			return a
		}
	}
	return agent.SubAgent{}
}

// ceilings are the bounds of a child's tools: no child may do what its parent may
// not, or was not given to hand on.
func (s *step) ceilings(sub agent.SubAgent) (all [][]string) {
	if s.Birth != nil {
		all = append(all, s.Birth.Ceilings...)
	}
	if len(s.Spec.Ceiling) > 0 {
		all = append(all, s.Spec.Ceiling)
	}
	if len(sub.Tools) > 0 {
		return append(all, sub.Tools)
	}
	own := []string{""} // no tool has this name: an empty list would be no bound
	for _, t := range s.Spec.Toolset {
		if t.By == "" {
			own = append(own, t.Name)
		}
	}
	return append(all, own)
}

// inheritedRules are this run's, which hold below it too: they were recorded whole
// with the Spec, and are known here without their schemas.
func (s *step) inheritedRules() []agent.Rule { return s.Inherited }

// handedDown are the holds on this run as those below it have them.
func (s *step) handedDown() (held []agent.Hold) {
	for _, h := range s.Holds {
		h.From = agent.HoldInherited
		held = append(held, h)
	}
	return held
}

// below finds a child of this run.
func (s *step) below(session string) *Child {
	i := slices.IndexFunc(s.Children, func(c Child) bool { return c.Session == session })
	if i < 0 {
		return nil
	}
	return &s.Children[i]
}

// childStarted learns that a child has begun, or why it could not.
func (s *step) childStarted(in ChildStarted) error {
	c := s.below(in.Session)
	if c == nil || !c.live() || c.Started {
		return s.refuse("child %s is not waited for", in.Session)
	}
	if in.Err != nil {
		s.childGone(c, &agent.Outcome{V: agent.Version, Type: "outcome", Session: c.Session, Agent: c.Agent, Status: agent.Failed, Reason: string(in.Err.Code), Error: in.Err})
		return nil
	}
	c.Started, c.Run, c.Status, c.Heard = true, in.Run, agent.Running, s.now()
	s.tellOfChild(agent.ChildStarted, *c, "")
	for _, o := range c.Owed {
		o.Run = c.Run
		s.do(TellChild{Session: c.Session, Order: o})
	}
	c.Owed = nil
	if c.Call == "" {
		s.handleOf(*c)
	}
	return nil
}

// handleOf answers the call that started a child in the background.
func (s *step) handleOf(c Child) {
	i := s.callIndex(c.By)
	if i < 0 || s.Calls[i].State != Below {
		return
	}
	text, err := json.Marshal(struct {
		Child  string       `json:"child"`
		Status agent.Status `json:"status"`
	}{c.Session, c.Status})
	if err != nil {
		text = []byte(c.Session)
	}
	s.settle(i, agent.ToolResult{Call: c.By, Tool: s.Calls[i].Tool, Status: agent.CallOK, Text: string(text)})
}

// childEnded learns of a child's end, by its result or by its own report: the
// first counts.
func (s *step) childEnded(session string, o *agent.Outcome) error {
	c := s.below(session)
	if c == nil || !c.live() {
		return s.refuse("child %s is not waited for", session)
	}
	s.childGone(c, o)
	return nil
}

// maxChildText bounds what a run keeps of a child's answer once it is told.
const maxChildText = 2 << 10

func (s *step) childGone(c *Child, o *agent.Outcome) {
	c.Status, c.Suspension, c.Heard, c.Owed = o.Status, nil, s.now(), nil
	if i := s.callIndex(c.By); i >= 0 && s.Calls[i].State == Below && (c.Call != "" || !c.Started) {
		s.settle(i, childResult(c.By, s.Calls[i].Tool, o))
	}
	c.Outcome = s.kept(o)
	s.tellOfChild(agent.ChildEnded, *c, o.Reason)
	s.answerWaits()
}

// kept is what a run keeps of a child's outcome: all of it where a handoff will be
// made of it, little else.
func (s *step) kept(o *agent.Outcome) *agent.Outcome {
	kept := *o
	if o.Handoff != nil && s.Stopping == nil {
		kept.Text, kept.Handoff = o.Handoff.Summary, nil
	}
	kept.Text = agent.Cut(kept.Text, maxChildText, len(kept.Text))
	if len(kept.Output) > maxChildText {
		kept.Output = nil
	}
	return &kept
}

// maxEnded bounds how many children that have ended are remembered.
const maxEnded = 256

// forget drops the oldest children that have ended.
func (s *step) forget() {
	ended := 0
	for _, c := range s.Children {
		if !c.live() {
			ended++
		}
	}
	s.Children = slices.DeleteFunc(s.Children, func(c Child) bool {
		drop := !c.live() && ended > maxEnded
		if drop {
			ended--
		}
		return drop
	})
}

// reported takes what a child says of itself.
func (s *step) reported(r agent.ChildReport) error {
	c := s.below(r.Session)
	switch {
	case r.Run != s.Run:
		return s.refuse("a report of %s is for run %s", r.Session, r.Run)
	case c != nil && c.live() && r.Met != nil:
		s.metBelow(c, *r.Met)
		return nil
	case c == nil || !c.live() || r.Seq <= c.Seq:
		return s.refuse("child %s is not waited for, or has told more already", r.Session)
	}
	c.Seq = r.Seq
	if r.Outcome != nil {
		return s.childEnded(r.Session, r.Outcome)
	}
	c.Heard, c.Suspension = s.now(), r.Suspension
	if c.Status != r.Status {
		c.Status = r.Status
		t := agent.ChildResumed
		if r.Status == agent.Suspended {
			t = agent.ChildSuspended
		}
		s.tellOfChild(t, *c, "")
	}
	s.answerWaits()
	return nil
}

// tellOfChild records what became of a child, unless the run's end is recorded.
func (s *step) tellOfChild(t agent.EventType, c Child, reason string) {
	if s.over() {
		return
	}
	s.resumed.Cause = agent.Initiator(firstOf(string(s.resumed.Cause), string(agent.ByTriggered)))
	s.tell(agent.Event{Type: t, Child: &agent.ChildNote{Session: c.Session, Run: c.Run, Agent: c.Agent, Call: c.By, Status: c.Status, Reason: reason}})
}

// tellChildren passes an order on to every child that may still be working.
func (s *step) tellChildren(o agent.HoldOrder) {
	for i := range s.Children {
		if s.Children[i].live() {
			s.tellChild(&s.Children[i], o)
		}
	}
}

func (s *step) tellChild(c *Child, o agent.HoldOrder) {
	if !c.Started {
		c.Owed = append(slices.Clip(c.Owed), o)
		return
	}
	o.Run = c.Run
	s.do(TellChild{Session: c.Session, Order: o})
}

// working counts the runs below this one that may still be working.
func (s State) working() (n int) {
	for _, c := range s.Children {
		if c.live() {
			n++
		}
	}
	return n
}

// liveChildren tells whether a run below this one may still be working.
func (s *step) liveChildren() bool { return slices.ContainsFunc(s.Children, Child.live) }

// foreground tells whether a call of the turn waits for a run below.
func (s *step) foreground() bool {
	return slices.ContainsFunc(s.Calls, func(c Call) bool { return c.State == Below }) ||
		slices.ContainsFunc(s.Children, func(c Child) bool { return c.live() && !c.Started })
}

// childrenRest tells whether the turn waits for runs below alone, all of which
// are suspended.
func (s *step) childrenRest() bool {
	rest := false
	for _, c := range s.Calls {
		switch c.State {
		case Waiting, Active, Awaiting:
			return false
		case Below:
			for _, on := range s.waitedFor(c) {
				if child := s.below(on); child == nil || child.live() && child.Status != agent.Suspended {
					return false
				}
			}
			rest = true
		}
	}
	return rest
}

// childrenWork tells whether a run below that the turn waits for goes on.
func (s *step) childrenWork() bool {
	for _, c := range s.Calls {
		if c.State == Below && slices.ContainsFunc(s.waitedFor(c), s.busyBelow) {
			return true
		}
	}
	return false
}

// waitedFor lists the children whose end a call waits for.
func (s *step) waitedFor(c Call) (sessions []string) {
	if len(c.On) > 0 {
		return c.On
	}
	for _, child := range s.Children {
		if child.By == c.ID {
			sessions = append(sessions, child.Session)
		}
	}
	return sessions
}

// counts sums the children up by how they stand, as far as that was heard.
func (s State) counts() (n agent.Children) {
	for _, c := range s.Children {
		switch {
		case !c.live():
			n.Ended++
		case c.Status == agent.Suspended:
			n.Suspended++
		default:
			n.Running++
		}
	}
	return n
}
