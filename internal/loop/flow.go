package loop

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// A flow is an agent whose next steps a Go function decides, in place of a model (package
// flow). A step is a tool call like a model's: rules, requests, holds, children and a stop treat
// both alike. Four things differ:
//
//   - A turn is one asking. It is over when the function has answered; its steps may stay open
//     over many turns.
//   - The function is asked again as soon as one step has its result, and not when all have.
//     A step that waits for a person keeps no other step waiting.
//   - The run is suspended only when every open step waits.
//   - A step that was not made (its result is skipped) is asked for again, since the function
//     still waits for it.

// Flow is the part that keeps the results of a flow's steps until its function is called again.
type Flow struct {
	// News means that a step has a result that the function does not know yet.
	News bool `json:"news,omitempty"`
	// Full means that the function asks for further steps, for which there was no room or no space. It
	// is asked again when any step has ended. Freed means that one has ended since the function was asked.
	Full  bool `json:"full,omitempty"`
	Freed bool `json:"freed,omitempty"`
	// StateChanges are keys of the session's state that steps have set since the last turn
	// ended.
	StateChanges map[string]json.RawMessage `json:"state_changes,omitempty"`
	// Answers are what steps have asked and got, while these steps are to be made again.
	Answers []StepAnswers `json:"answers,omitempty"`
}

// StepAnswers are the answers to a step's own questions. They count for a step with the same path, tool
// and arguments, whichever turn asks for it. Without them, a worker that was lost after an answer would
// ask the person again.
type StepAnswers struct {
	Path      string             `json:"path"`
	Tool      string             `json:"tool"`
	Arguments string             `json:"arguments"` // their [Digest]
	Answers   []agent.ToolAnswer `json:"answers"`
	// Since is when the step began.
	Since time.Time `json:"since,omitzero"`
}

// jsonLen returns the greatest length of the answers in JSON.
func (a StepAnswers) jsonLen() int {
	n := requestFrame + jsonLen(a.Path) + jsonLen(a.Tool)
	for _, one := range a.Answers {
		n += answerJSONLen(one)
	}
	return n
}

// keepAnswers keeps the answers of a step that was not finished.
func (f *Flow) keepAnswers(a StepAnswers) { f.Answers = append(slices.Clip(f.Answers), a) }

// takeAnswers returns the answers of a step that is asked for again, and forgets them. Of a step with
// other arguments they do not count: people have answered about something else.
func (f *Flow) takeAnswers(c agent.ToolCall) (kept StepAnswers) {
	i := slices.IndexFunc(f.Answers, func(a StepAnswers) bool { return a.Path == c.ProviderID })
	if i < 0 {
		return kept
	}
	if a := f.Answers[i]; a.Tool == c.Tool && a.Arguments == Digest(c.Arguments) {
		kept = a
	}
	f.Answers = slices.Concat(f.Answers[:i], f.Answers[i+1:]) // the state before this step shares the array
	if len(f.Answers) == 0 {
		f.Answers = nil // as a state has it that comes from JSON
	}
	return kept
}

// answersSize returns the greatest length of all kept answers in JSON.
func (f *Flow) answersSize() (n int) {
	for _, a := range f.Answers {
		n += a.jsonLen()
	}
	return n
}

// keepStateChanges keeps the state changes of a step for the next checkpoint.
func (f *Flow) keepStateChanges(set map[string]json.RawMessage) {
	if len(set) == 0 {
		return
	}
	all := maps.Clone(f.StateChanges) // the state before this step shares the map
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	maps.Copy(all, set) //workflowcheck:ignore each key is set once
	f.StateChanges = all
}

// takeStateChanges returns the state changes for a checkpoint, and forgets them.
func (f *Flow) takeStateChanges() map[string]json.RawMessage {
	set := f.StateChanges
	f.StateChanges = nil
	return set
}

func (f *Flow) setNews(news bool) { f.News = news }

// asked records that the function is asked: it is told of all results.
func (f *Flow) asked() { f.News, f.Full, f.Freed = false, false, false }

// answered takes from an answer whether there was no room for further steps. A step that has ended
// meanwhile has left some.
func (f *Flow) answered(full bool) { f.Full, f.News = full, f.News || full && f.Freed }

// leaveOut records that a step was not begun for lack of space.
func (f *Flow) leaveOut() { f.Full = true }

// ended records that steps have ended; news means that the function waits for one of these.
func (f *Flow) ended(news bool) { f.News, f.Freed = f.News || f.Full || news, true }

// isFlow reports whether a function decides the run's steps, and no model.
func (s *State) isFlow() bool { return s.Spec != nil && s.Spec.Flow }

// step returns the path of a flow's step; empty for a model's call.
func (s *State) stepPath(c Call) string {
	if s.Checks.has(c.ID) { // a check is found in another build, and charged, as a flow's step is
		return c.ID
	}
	if !s.isFlow() {
		return ""
	}
	return c.ProviderID
}

// hasFlowNews reports whether a flow can be asked while steps of it are open.
func (s *State) hasFlowNews() bool { return s.isFlow() && s.awaitsCalls() && s.Flow.News }

// drainsForNewExecution reports whether a flow begins nothing, so that it can continue as new
// when its running tools have returned. A flow may always have something in progress: it would
// never be between two turns by itself. But one of its tools may run for hours, and keeps all other
// steps waiting then. So a flow drains only when its history has room for little else; before, it
// continues as new if no tool happens to run.
func (s *step) drainsForNewExecution() bool {
	return s.isFlow() && s.HistoryHalfFull && s.End.Stopping == nil
}

// stepsOnlyWait reports whether every open step of a flow waits: for people, an event, a time,
// or a suspended child.
func (s *State) stepsOnlyWait() bool { return s.stepsRest(s.Children.endedOrSuspended) }

// stepsRest is stepsOnlyWait, where rests says which children do not work.
func (s *State) stepsRest(rests func(session string) bool) bool {
	// Also while it continues as new: a suspension lasts over that.
	if s.Phase != RunActive && s.Phase != RunContinuing || s.Turn.Phase != TurnWorking || s.Flow.News {
		return false
	}
	return !slices.ContainsFunc(s.Calls.List, func(c Call) bool {
		switch c.State {
		case CallAwaitingAnswer, CallAwaitingEvent:
			return false
		case CallAwaitingChildren:
			return slices.ContainsFunc(s.awaitedChildren(c), func(on string) bool { return !rests(on) })
		}
		return true
	})
}

// flowReasons returns what keeps a flow from its next turn. What single steps wait for counts
// only when all of them wait; a limit that asks keeps the whole run.
func (s *State) flowReasons() (all reasons) {
	wait := s.stepsOnlyWait()
	for i, r := range s.Requests.reasons() {
		if wait || s.Requests.Open[i].Type == agent.RequestLimit {
			all = append(all, r)
		}
	}
	all = append(all, s.Park.reasons()...)
	if wait {
		all = append(all, s.Calls.waitReasons()...)
	}
	all = slices.Concat(all, s.Holds.reasons(), s.budgetReasons())
	if len(all) == 0 && wait {
		all = append(all, reason{kind: agent.SuspensionAwaitingChildren, owner: agent.OwnerRuntime, finds: []string{"children"}})
	}
	return all
}

// askFlow asks the function for its next steps.
func (s *step) askFlow() {
	s.Turn.advance(s.At, s.Log.Seq)
	s.Flow.asked()
	s.callFlow(false)
}

func (s *step) callFlow(regular bool) {
	args := FlowArgs{Caller: s.caller(), Agent: s.agent(), Room: wire.MaxSteps - len(s.Calls.List), Space: max(1, s.space()), Dropped: s.Calls.droppedSteps()}
	s.do(AskFlow{FlowArgs: args, AskSeq: s.Turn.AskSeq, Regular: regular})
}

// awaitsFlow reports whether the function's answer to this asking is waited for.
func (s *step) awaitsFlow(ask int64) bool {
	return s.Turn.Phase == TurnAdvancing && s.Turn.AskSeq == ask
}

// takeFlow handles what became of an asking.
func (s *step) takeFlow(in Input) error {
	switch in := in.(type) {
	case FlowSlow:
		return s.flowSlow(in)
	case FlowFailed:
		return s.flowFailed(in)
	case FlowAnswered:
		return s.flowAnswered(in)
	}
	return nil
}

// flowSlow asks once more, by an activity that may take longer than a local one. So a function
// that hangs keeps no held run from being suspended.
func (s *step) flowSlow(in FlowSlow) error {
	if !s.awaitsFlow(in.AskSeq) {
		return s.refuse("the flow is not asked about event %d", in.AskSeq)
	}
	if s.Holds.any() { // a held flow is asked when the hold is removed
		s.leaveAdvancing()
		s.recordTurnEnd()
		s.Flow.setNews(true)
		return nil
	}
	s.callFlow(true)
	return nil
}

// flowFailed handles that the function could not be asked. If another worker may be able to,
// the run pauses, and a resume asks again. Else it fails.
func (s *step) flowFailed(in FlowFailed) error {
	if !s.awaitsFlow(in.AskSeq) {
		return s.refuse("the flow is not asked about event %d", in.AskSeq)
	}
	s.leaveAdvancing()
	s.recordTurnEnd()
	switch in.Err.Code {
	case agent.CodeUnknownAgent, agent.CodeStoreUnavailable, agent.CodeChunkMissing, agent.CodeWorkerLost:
		s.Flow.setNews(true)
		s.holdForLostWorkers(in.Err)
	default:
		s.fail(in.Err)
	}
	return nil
}

// leaveAdvancing ends an asking: the run waits for the open steps, or is between two turns.
func (s *step) leaveAdvancing() {
	if len(s.Calls.List) > 0 {
		s.Turn.work()
		return
	}
	s.Turn.end()
}

// flowAnswered takes the function's next steps, or its end.
func (s *step) flowAnswered(in FlowAnswered) error {
	if !s.awaitsFlow(in.AskSeq) {
		return s.refuse("the flow is not asked about event %d", in.AskSeq)
	}
	a := in.Answer
	s.Flow.answered(a.Full)
	for _, path := range a.Dropped {
		s.dropStep(path)
	}
	switch {
	case a.Error != nil:
		s.leaveAdvancing()
		s.recordTurnEnd()
		s.fail(a.Error)
	case a.Done:
		s.leaveAdvancing()
		s.flowDone(a)
	case len(a.Steps) == 0:
		s.leaveAdvancing()
		s.recordTurnEnd()
		if len(s.Calls.List) == 0 && !s.Flow.News {
			s.fail(agent.Errorf(agent.CodeStuck, "the flow waits, and no step of it is open: it may wait for a channel, a lock or another goroutine of its own"))
		}
	default:
		begun := s.takeSteps(a)
		s.Flow.setNews(s.Flow.News || a.More && begun) // else the same steps would come again
		s.recordTurnEnd()
	}
	return nil
}

// flowDone completes the run with the function's result.
func (s *step) flowDone(a wire.FlowAnswer) {
	if a.Text != "" {
		m := agent.TextMessage(agent.RoleAssistant, a.Text)
		s.recordMessage(m, m.Size())
	}
	s.Turn.setText(a.Text)
	s.recordTurnEnd()
	s.complete(agent.ReasonDone, a.Text, wire.Reply{Output: a.Output, Returned: a.Files}, "")
}

// flowLimitError says of a flow what [State.exhaustedLimit] says of a model's calls.
func flowLimitError(most int) *agent.Error {
	return agent.Errorf(agent.CodeLimitTurns, "the flow was asked for its next steps %d times, as often as limits.own_turns allows; does it loop?", most)
}

// waitingText says what a flow that is suspended waits for, for listings.
func (s *step) waitingText() string {
	if len(s.Requests.Open) > 0 {
		return s.Requests.Open[0].Text
	}
	for _, c := range s.Calls.List {
		if c.State == CallAwaitingEvent {
			return fmt.Sprintf("step %s waits", c.ProviderID)
		}
	}
	return ""
}

// endToolTimeIfIdle ends the time that a stop gives to running steps, if none is running.
func (s *step) endToolTimeIfIdle() {
	if s.Calls.runningCount() == 0 {
		s.End.endToolTime()
	}
}

// beginNewExecution prepares to continue as new. From then on Temporal delivers no result of the
// children that a flow's steps wait for, or that were released, so the children are asked to report
// their ends.
func (s *step) beginNewExecution() {
	s.enterPhase(RunContinuing)
	for i, c := range s.Children.List {
		if (s.isFlow() && c.Call != "" || c.Released) && c.notEnded() && !c.Detached {
			o := s.passHolds(agent.VerbResume, 0)
			o.ReportEnd = true
			s.orderChild(i, o)
		}
	}
}

// wireRequests returns the open requests as the wire shows them.
func (s *State) wireRequests() (all []agent.Request) {
	for _, o := range s.Requests.Open {
		all = append(all, s.wireRequest(o))
	}
	return all
}

// stepWaits returns what the steps of a flow wait for, as the wire shows it.
func (s *State) stepWaits() (all []agent.StepWait) {
	for _, c := range s.Calls.List {
		if c.State == CallAwaitingEvent {
			all = append(all, agent.StepWait{Step: c.ProviderID, Conditions: c.Wait.Conditions})
		}
	}
	return all
}
