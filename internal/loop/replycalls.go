package loop

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// Equal calls in a row: at repeatWarn the model is told, at repeatLimit the run ends or
// asks.
const (
	repeatWarn  = 3
	repeatLimit = 6
)

// dispatch takes the calls of a reply. Each is recorded before it is made, so it counts as a
// repeat whatever becomes of it.
func (s *step) dispatch(calls []agent.ToolCall, in ModelReplied, grace *Grace) {
	s.Turn.work()
	s.Calls.set(calls)
	s.Calls.setFiles(0, in.Reply.Files)
	seen := s.recordRequested(calls, in.Reply)
	stuck := s.checkForm(in.Reply)
	// A call of the model always gets a result, also if none of them is made.
	r := in.Reply
	switch {
	case grace != nil:
		s.skipPending(grace.Reason)
		return
	case s.End.Stopping != nil:
		s.skipPending(reasonStopped)
		return
	case seen.tool != "":
		s.loopDetected(seen.tool)
		return
	case stuck != nil:
		s.recoverOrFail(agent.FailureNoProgress, stuck)
		return
	case s.otherLoop(calls, in.Reply):
		return
	// repair counts this error, also if one more try is allowed. A call of finish gets it as
	// its result.
	case r.OutputError != "" && s.repairCall(r.OutputError):
		return
	}
	// Before the rules: nobody is asked about a call that cannot be made.
	s.rejectInvalid(r)
	rulings, numbers := s.applyRules(r)
	if s.denied(rulings) {
		return
	}
	s.showFiles(r.ShownFiles)
	s.takeNotebook(r.Notebook)
	s.takeProgress()
	s.searchTools(r.FoundTools)
	// Before the approvals: a question or a park skips all other calls, so none of these may
	// have a request yet. After the rules: a denied ask_user opens no request.
	if !s.takeQuestionsOrPark(in) {
		s.checkOrAsk(r, rulings, numbers, seen)
	}
}

// recordRequested records the calls of a reply, and counts which come again.
func (s *step) recordRequested(calls []agent.ToolCall, r wire.Reply) (seen repeats) {
	for i, c := range calls {
		s.record(agent.Event{Type: agent.EventCallRequested, Call: &agent.CallUpdate{Call: c.ID, Tool: c.Tool, Lifecycle: s.lifecycleCall(calls, i, r.ParkRequests)}})
		if c.Tool != agent.FinishTool {
			s.Daemon.acted()
		}
		digest := sameOf(r, i, c)
		n := s.countEqual(i, c, digest)
		s.noteRepeat(c.Tool, n)
		seen.note(i, c.Tool, s.Turn.Repeat, n)
		if n == repeatWarn {
			s.Calls.remark(i, s.Spec.Text(agent.TextRepeatedCall, "times", strconv.Itoa(n)))
		}
	}
	return seen
}

// loopDetected ends a run whose model repeats one call without end, or asks a person.
func (s *step) loopDetected(tool string) {
	how := "in a row"
	if s.Spec.LoopDetection.Scope == agent.LoopScopeRun {
		how = "in the run (loop_detection.scope)"
	}
	err := agent.Errorf(agent.CodeLoopDetected, "the model made the same call of %s %d times %s", tool, repeatLimit, how)
	s.loops(err)
}

// rejectInvalid rejects the calls that are not made whatever the rules say.
func (s *step) rejectInvalid(r wire.Reply) {
	skills := 0
	for i, c := range s.Calls.List {
		if c.Tool == agent.SkillTool && len(s.Spec.Skillset) > 0 {
			skills++
		}
		if skills > maxSkillCalls && c.Tool == agent.SkillTool {
			s.setResult(i, agent.CallRejected, fmt.Sprintf("Not executed: one reply may call %s %d times. Ask for the others in the next.", agent.SkillTool, maxSkillCalls))
			continue
		}
		if i >= maxCalls {
			s.setResult(i, agent.CallRejected, fmt.Sprintf("Not executed: one reply may ask for %d calls. Ask for the others in the next.", maxCalls))
			continue
		}
		if status, text, ok := s.rejection(i, c.ToolCall, r); ok {
			s.setResult(i, status, text)
		}
	}
}

// maxFault bounds the text that tells the model how arguments do not fit. It has to fit into
// ownWords.
const maxFault = ownWords - 64

// rejection returns the result of a call that is not made; ok is false for a call that may
// be.
func (s *step) rejection(i int, c agent.ToolCall, r wire.Reply) (status agent.CallStatus, text string, ok bool) {
	_, known := s.Spec.Tool(c.Tool)
	known = known || c.Tool == agent.ShowFileTool && len(r.ShownFiles) > 0
	switch {
	// Before !known: such a tool is not in the toolset either.
	case slices.Contains(s.Parent.ForbiddenTools, c.Tool):
		text = fmt.Sprintf("Permission denied: %s is beyond what this agent may use.", c.Tool)
	case !known && s.isFlow() && strings.HasPrefix(c.Tool, agent.SubAgentPrefix):
		text = fmt.Sprintf("Agent not found: %s. The flow's Options.Agents has: %s.", strings.TrimPrefix(c.Tool, agent.SubAgentPrefix), s.agentNames())
	case !known:
		text = fmt.Sprintf("Tool not found: %s. The tools are: %s.", c.Tool, s.toolNames())
	case s.notOffered(c) != "":
		text = s.notOffered(c)
	case slices.Contains(r.HiddenTools, c.Tool):
		text = s.Spec.Text(agent.TextToolHidden, "tool", c.Tool)
	case s.refusesTextCalls(r):
		text = s.Spec.Text(agent.TextTextCallRejected)
	case c.Malformed != "":
		text = malformed(c.Malformed)
	case i < len(r.ArgumentErrors) && r.ArgumentErrors[i] != "":
		text = fit(r.ArgumentErrors[i], maxFault)
	// The output of the first call was read (see checkOutput), and the run completes with it.
	case c.Tool == agent.FinishTool && s.hasFinishTool() && s.finishedBefore(i):
		text = "Not executed: one reply may call finish once, and the first call counts."
	case c.Tool == agent.FinishTool && s.hasFinishTool() && r.OutputError != "":
		text = "The arguments do not fit: " + r.OutputError + "." + s.quoteOutput()
	case c.Tool == agent.FinishTool && s.hasFinishTool():
		return agent.CallOK, "The work is done.", true
	case c.Tool == agent.ReturnUnableTool && s.hasUnableTool():
		return agent.CallOK, "Noted: you can't do the task.", true
	default:
		return "", "", false
	}
	return agent.CallRejected, text, true
}

// finishedBefore reports whether a reply has a readable call of finish before its i-th call.
func (s *step) finishedBefore(i int) bool {
	return slices.ContainsFunc(s.Calls.List[:i], func(c Call) bool { return c.Tool == agent.FinishTool && c.Malformed == "" })
}

// hasFinishTool reports whether finish is the runtime's tool here, and not a worker's.
func (s *step) hasFinishTool() bool { return s.Spec.Completion == agent.CompletionTool }

func (s *step) toolNames() string {
	var names []string
	for _, t := range s.Spec.Toolset {
		if !s.Spec.HidesTools() || t.Executor == agent.ExecutorRuntime { // the others are found with tool_search
			names = append(names, t.Name)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func (s *step) agentNames() string {
	var names []string
	for _, a := range s.Spec.Agents {
		names = append(names, a.Agent)
	}
	return firstOf(strings.Join(names, ", "), "none")
}

// endCalls ends a turn whose calls all have their results.
func (s *step) endCalls() {
	s.recordResults()
	s.learnFailed(s.Calls.List) // before the turn's checkpoint: a fork from there knows the failed calls
	// Before Calls.clear: the checkpoint has the calls' state changes.
	s.recordTurnEnd()
	s.Hooks.release()
	hook, hookBytes := s.Hooks.takeNote()
	correction := s.Turn.Correction
	done, unable := s.endingCalls()
	last, calls, judgedDone := s.stopsAfter(), s.Calls.List, s.Hooks.takeDone()
	s.acted(calls)
	s.Turn.countMade(calls)
	s.uncountInterrupted(calls)
	s.Calls.clear()
	s.Turn.end()
	switch {
	case s.End.Stopping != nil:
		s.Daemon.keepWorkIf(done == nil && last == nil) // the work is done; messages that wait are recorded at the end
		return
	case done == nil && unable == nil && last == nil && !judgedDone:
	// A message that waits wins: the model continues, and has to make the call again.
	case s.deliver(true):
	case done != nil:
		s.finish(*done)
		return
	case unable != nil: // before stop_after: what the call did does not complete the task
		s.returnUnable(*unable)
		return
	case last != nil:
		s.completeByCall(*last)
		return
	default: // a judge has ended a run that repeats itself
		s.complete(agent.ReasonStalled, AnswerText(s.Spec, s.Turn.textOfTask()), wire.Reply{}, "")
		return
	}
	if correction != "" {
		s.recordOwnText(agent.NoteNudge, correction)
	}
	if hook != "" {
		s.recordNoteSized(agent.NoteVerify, hook, hookBytes)
	}
	if text, bytes := s.Recovery.takeNote(); text != "" {
		s.recordNoteSized(agent.NoteRecovery, text, bytes)
	}
	if !s.equalResults(calls) {
		s.failedCalls(calls)
	}
}

// endingCalls returns the calls of a turn that end the run: of finish, and of return_unable.
func (s *step) endingCalls() (done, unable *Call) {
	if s.hasFinishTool() {
		done = s.succeeded(agent.FinishTool)
	}
	if s.hasUnableTool() {
		unable = s.succeeded(agent.ReturnUnableTool)
	}
	return done, unable
}

// succeeded returns the first call of a tool in the turn that succeeded; nil if none did.
func (s *step) succeeded(tool string) *Call {
	for _, c := range s.Calls.List {
		if c.Tool == tool && c.Result.Status == agent.CallOK {
			return copied(&c)
		}
	}
	return nil
}

// recordResults records the results as one message, in the order of the calls.
func (s *step) recordResults() {
	m := agent.Message{Role: agent.RoleTool}
	bytes := 0
	for _, c := range s.Calls.List {
		m.Parts = append(m.Parts, agent.Part{Type: agent.PartToolResult, Result: c.Result})
		bytes += frame + c.Bytes
	}
	s.recordMessage(m, bytes)
}

// closeOpenCalls gives every open call a result, since the run ends in mid-turn. No call in
// the log is ever without one: a provider would refuse the conversation.
func (s *step) closeOpenCalls() {
	s.Turn.end()
	if len(s.Calls.List) == 0 {
		return
	}
	checks := s.Checks.Current != nil && s.Hooks.Calls == nil // between two turns
	for i := range s.Calls.List {
		s.closeCall(i)
	}
	if checks { // the turn was over before
		s.Checks.end()
		s.Calls.clear()
		return
	}
	if s.Hooks.release(); s.Checks.Current != nil { // the check is no call of the model
		s.Calls.removeCheck(s.Checks.end().Call)
	}
	s.recordResults()
	s.recordTurnEnd()
	s.Calls.clear()
}

// closeCall gives a call of a run that ends a result, if it has none.
func (s *step) closeCall(i int) {
	switch c := s.Calls.List[i]; c.State {
	case CallDone:
	case CallAwaitingChildren:
		s.setResult(i, agent.CallSkipped, "Not finished: the run ended before the agent did.")
	case CallRunning:
		s.chargeLostCall(c)
		if s.Checks.has(c.ID) { // it only looks: nobody has to find out what it has done
			s.skip(i, "the run ended before")
			return
		}
		s.setResult(i, agent.CallUnknown, "Unknown outcome: the run ended while the call was in progress. It may or may not have had its effect.")
	default:
		s.skip(i, "the run ended before")
	}
}
