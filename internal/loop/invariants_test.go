package loop

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// checkInvariants checks what holds after every step, whatever the input was.
func checkInvariants(t require.TestingT, before, after State, effects []Effect) {
	if h, ok := t.(*testing.T); ok {
		h.Helper()
	}
	if before.Phase == RunEnded {
		before.Verbs.Refused = after.Verbs.Refused // which is shown, and is no more than that
		require.Equal(t, before, after, "nothing leaves an end")
		require.Empty(t, effects)
		return
	}
	require.GreaterOrEqual(t, after.Log.Seq, before.Log.Seq)
	last := after.Log.Seq
	for i, e := range slices.Backward(after.Log.Tail) {
		require.Equal(t, last-int64(len(after.Log.Tail)-1-i), e.Seq, "events are numbered without a gap")
	}
	if end := slices.IndexFunc(after.Log.Tail, func(e agent.Event) bool { return e.Outcome != nil }); end >= 0 {
		for _, e := range after.Log.Tail[end+1:] { // a verb may come while the end is stored
			require.Equal(t, agent.EventVerbRefused, e.Type, "nothing is recorded after the end event")
		}
	}
	for _, c := range before.Calls.List {
		if c.State != CallDone {
			continue
		}
		kept := slices.ContainsFunc(after.Calls.List, func(k Call) bool { return k.ID == c.ID && k.Result != nil }) || told(after, c)
		require.True(t, kept, "the result of %s was dropped", c.ID)
	}
	checkFiles(t, before, after)
	checkPairs(t, after)
	checkTurns(t, after)
	completes := slices.ContainsFunc(effects, func(e Effect) bool { _, ok := e.(Complete); return ok })
	require.Equal(t, after.Phase == RunEnded, completes, "an end is told when it is reached")
	if after.Phase == RunEnded {
		require.NotNil(t, after.End.Outcome)
		require.Empty(t, after.Calls.List, "nothing is left open at an end")
		require.Nil(t, after.Holds.Unanswered, "nobody waits for an answer that does not come")
	}
	checkHolds(t, before, after, effects)
	checkGrace(t, after, effects)
	checkCancel(t, before, after, effects)
	checkApprovals(t, after, effects)
	checkKept(t, before, after)
	checkAnswerable(t, after, effects)
	if before.Status() != agent.StatusSuspended && after.Status() == agent.StatusSuspended && !(&step{State: after}).onlyHeldByAncestor() {
		require.LessOrEqual(t, after.Suspensions.Open.Seq, after.Log.storedTo(), "a run says that it is suspended when that is stored")
	}
	if carries := slices.ContainsFunc(effects, func(e Effect) bool { _, ok := e.(ContinueAsNew); return ok }); carries {
		require.Nil(t, after.Holds.Unanswered, "an answer has to come from the execution that was asked")
		require.True(t, after.Log.tailFitsAlong(), "little that is not stored is carried over")
		require.LessOrEqual(t, written(after), maxState, "the state can be carried over")
		require.Zero(t, after.Log.SealingSeq)
	}
}

// checkModelCalls requires another number for a model call that begins while another one is in flight.
// Otherwise the run would take the reply of the first for that of the second.
func checkModelCalls(t require.TestingT, before State, in Input, effects []Effect) {
	_, replied := in.(ModelReplied)
	_, failed := in.(ModelFailed)
	if replied || failed || !before.Turn.inFlight() {
		return
	}
	for _, e := range effects {
		if c, ok := e.(CallModel); ok {
			require.Greater(t, c.Seq, before.Turn.AskSeq, "two model calls have the same number")
		}
	}
}

// checkFiles requires that a run shows only its own session's files, and few before they are stored.
func checkFiles(t require.TestingT, before, after State) {
	require.LessOrEqual(t, after.waitingFiles(), max(maxWaitingFiles, before.waitingFiles()))
	var list []agent.Part
	for _, c := range after.Calls.List {
		if c.Result != nil {
			require.LessOrEqual(t, len(c.Result.Files), agent.MaxFiles)
			list = append(list, c.Result.Files...)
		}
	}
	for _, e := range after.Log.Tail {
		// A summary names files of the conversation, which a fork may share with another session.
		if e.Seq > before.Log.Seq && e.Message != nil && e.Message.Note != agent.NoteSummary {
			for _, f := range e.Message.Files() {
				list = append(list, agent.Part{File: f})
			}
		}
	}
	for _, p := range list {
		require.NoError(t, p.File.Check())
		require.Equal(t, after.Session, p.File.Session)
	}
}

// checkRest wants the rules to have come to rest: none applies any more, except for the one
// that asks for a new execution at every input until it comes.
func checkRest(t require.TestingT, done *step) {
	require.Less(t, len(done.fired), 100, "rules undo each other: %q", done.fired)
	again := newStep(done.State, done.Moment)
	again.continuedAsNew, again.takesSignals = true, true
	if r := again.firstRule(); r != nil {
		require.Fail(t, "a rule still applies", r.name)
	}
}

// checkKept wants what was written down to stay until it is stored, and what was
// said to the run to wait until it is written down.
func checkKept(t require.TestingT, before, after State) {
	if before.HasNoLog() {
		return // the session's log begins elsewhere, or the run continues with another
	}
	stored := after.Log.Seq - int64(len(after.Log.Tail))
	require.LessOrEqual(t, stored, max(before.Log.SealingSeq, before.Log.Seq-int64(len(before.Log.Tail))), "nothing is stored that no seal was asked for")
	for _, e := range before.Log.Tail {
		if e.Seq > stored {
			require.Equal(t, e, after.Log.Tail[e.Seq-stored-1], "an event was changed")
		}
	}
	told := slices.Clone(after.Messages.Pending)
	for _, e := range after.Log.Tail {
		// A summary names files of the conversation, which a fork may share with another session.
		if e.Seq > before.Log.Seq && e.Message != nil && e.Message.Note != agent.NoteSummary {
			told = append(told, PendingMessage{Message: *e.Message})
		}
	}
	for _, l := range before.Messages.Pending {
		i := slices.IndexFunc(told, func(o PendingMessage) bool { return reflect.DeepEqual(o.Message, l.Message) })
		require.GreaterOrEqual(t, i, 0, "message %q was dropped", l.Message.Text())
		told = slices.Delete(told, i, i+1)
	}
	if before.Park != nil && before.Park.Met != nil && before.Park.Met.Topic != "" && after.Park == nil {
		met := before.Park.Met.message()
		require.True(t, slices.ContainsFunc(told, func(o PendingMessage) bool { return reflect.DeepEqual(o.Message, met) }), "event %s was dropped", before.Park.Met.Topic)
	}
	if after.outcomeDecided() {
		require.Empty(t, after.Messages.Pending, "all that was said is in the log at the end")
	}
	if lost := after.Log.SealingSeq == 0 && before.Log.SealingSeq > 0 && stored < before.Log.Seq; after.Phase == RunEnded && !lost {
		require.Empty(t, after.Log.toStore(), "all is stored at the end")
	}
}

// checkAnswerable wants a run to wait for what it asks for.
func checkAnswerable(t require.TestingT, after State, effects []Effect) {
	s := &step{State: after}
	waits := func(phases ...string) bool { return slices.Contains(phases, after.phaseName()) }
	for _, e := range effects {
		ok := true
		switch e := e.(type) {
		case Open:
			ok = waits(string(RunOpening))
		case Locate:
			ok = waits(string(RunLocating))
		case Import:
			ok = waits(string(RunImporting))
		case List, MakeWorkspace:
			ok = waits(string(RunListing))
		case EndWorkspace:
			ok = waits(string(RunEnding)) && after.Workspace.Ending
		case Look:
			ok = after.Watch.Looking && after.Watch.N == e.N
		case CallModel:
			ok = waits(string(TurnAsking), string(TurnSummarizing)) && after.Turn.AskSeq == e.Seq
		case CallTool:
			if after.SuspensionHooks.has(e.Call) {
				continue
			}
			ok = waits(string(TurnWorking), string(TurnAdvancing)) && after.Calls.List[s.Calls.find(e.Call)].State == CallRunning
		case AskFlow:
			ok = waits(string(TurnAdvancing)) && after.Turn.AskSeq == e.AskSeq
		case Seal:
			ok = after.Log.SealingSeq == e.To
		case MakeHandoff:
			ok = waits(string(RunHandingOff))
		case ContinueAsNew:
			ok = waits(string(RunContinuing))
		case StartChild:
			i := s.Children.find(e.Session)
			ok = i >= 0 && s.Children.List[i].notEnded() && !s.Children.List[i].Started
		case CheckParent:
			ok = after.Parent.Checking || after.outcomeDecided()
		case SetTimer:
			ok = e.At.Equal(after.NextTimer)
		}
		require.True(t, ok, "nothing waits for the answer to %T %+v in phase %s", e, e, after.phaseName())
	}
}

// checkApprovals wants no call to begin while an approval is open that could bring it about.
func checkApprovals(t require.TestingT, after State, effects []Effect) {
	if !after.Requests.asks(agent.RequestApproval) || after.isFlow() { // what a flow does beside it, its author wrote
		return
	}
	for _, e := range effects {
		_, starts := e.(StartChild)
		if call, ok := e.(CallTool); ok {
			tool, _ := after.Spec.Tool(call.Tool)
			starts = !tool.ReadOnly || strings.Contains(tool.Name, agent.SourceSeparator)
		}
		if starts {
			require.Fail(t, "something that writes was begun while an approval was open", "%T %+v", e, e)
		}
	}
}

// checkGrace wants nothing to be begun that is being given up: at the end of the grace it
// would count as lost.
func checkGrace(t require.TestingT, after State, effects []Effect) {
	if after.End.Grace == nil {
		return
	}
	for _, e := range effects {
		switch e.(type) {
		case CallModel, CallTool, StartChild:
			require.Fail(t, "something was begun within a grace", "%T %+v", e, e)
		}
	}
}

// checkCancel requires that a cancelled run begins nothing, and waits only for what is in flight and
// has a grace.
func checkCancel(t require.TestingT, before, after State, effects []Effect) {
	if !before.cancelling() && !after.cancelling() {
		return
	}
	if after.cancelling() {
		require.NotNil(t, after.End.Grace)
		require.True(t, after.Turn.inFlight() || after.Calls.runningCount() > 0, "a cancelled run waits for nothing")
		require.Nil(t, after.Suspensions.Open)
	} else {
		require.Equal(t, agent.StatusCancelled, after.End.Outcome.Status)
	}
	for _, e := range effects {
		switch e.(type) {
		case CallModel, CallTool, StartChild, AskFlow, MakeHandoff, ContinueAsNew:
			require.Fail(t, "a cancelled run begins something", "%T %+v", e, e)
		}
	}
}

// checkHolds wants nothing to begin that a hold keeps from beginning.
func checkHolds(t require.TestingT, before, after State, effects []Effect) {
	require.LessOrEqual(t, len(after.Holds.List), 2)
	rests := before.Suspensions.Open != nil && before.Suspensions.Open.AtRest && after.Suspensions.Open != nil
	for _, h := range after.Holds.List {
		if h.Verb != agent.VerbInterrupt && !rests && !after.isFlow() {
			continue
		}
		for _, e := range effects {
			if call, ok := e.(CallTool); ok && after.SuspensionHooks.has(call.Call) {
				continue // a hook only looks
			}
			if call, ok := e.(CallTool); ok && h.Verb == agent.VerbPause && before.Calls.findRunning(call.Call) >= 0 {
				continue // a pause lets it end
			}
			switch e.(type) {
			case CallModel, CallTool, StartChild, AskFlow:
				require.Fail(t, "something was begun under a hold", "%T under %+v", e, h)
			}
		}
	}
	for _, e := range before.Messages.Emitted {
		require.True(t, e.ID == "" || slices.ContainsFunc(after.Messages.Emitted, func(k agent.EmitCommand) bool { return k.ID == e.ID }) || saidTo(after, e.ID), "event %s was dropped", e.ID)
	}
	require.False(t, after.Suspensions.atRest() && after.Calls.runningCount() > 0, "a run that rests is at nothing")
	require.False(t, after.Suspensions.atRest() && after.Refreshing.Fetching, "a run that rests reads no instructions")
	require.False(t, after.Status() == agent.StatusSuspended && after.SuspensionHooks.asked(), "a run that says that it is suspended asks no hook")
	if w := after.Suspensions.Open; w != nil && !after.outcomeDecided() {
		require.True(t, len(after.Holds.List) > 0 || len(after.Requests.Open) > 0 || after.Park != nil || after.onlyAwaitsSuspendedChildren() || len(after.budgetReasons()) > 0 || after.isFlow() && after.stepsOnlyWait(), "a suspension waits for something")
		require.Nil(t, after.End.Stopping)
	}
	for _, r := range after.Requests.Open {
		i := slices.IndexFunc(after.Calls.List, func(c Call) bool { return c.ID == r.CallID })
		require.Equal(t, r.Type == agent.RequestLimit, i < 0, "a request has its call")
		if i >= 0 {
			require.Equal(t, CallAwaitingAnswer, after.Calls.List[i].State)
		}
	}
	if after.outcomeDecided() {
		require.Empty(t, after.Requests.Open)
		require.Nil(t, after.Suspensions.Open)
	}
}

// saidTo reports whether a message is in the log's tail, or on its way there.
func saidTo(s State, id string) bool {
	met := s.Park != nil && s.Park.Met != nil && s.Park.Met.ID == id
	return met || slices.ContainsFunc(s.Log.Tail, func(e agent.Event) bool { return e.Message != nil && e.Message.ID == id }) ||
		slices.ContainsFunc(s.Messages.Pending, func(l PendingMessage) bool { return l.Message.ID == id })
}

func told(s State, c Call) bool {
	for _, e := range s.Log.Tail {
		if e.Message == nil {
			continue
		}
		for _, p := range e.Message.Parts {
			if p.Result != nil && p.Result.Call == c.ID {
				return true
			}
		}
	}
	return false
}

// checkTurns wants every turn to end before the next one begins.
func checkTurns(t require.TestingT, s State) {
	open := 0
	for _, e := range s.Log.Tail {
		switch e.Type {
		case agent.EventRunStarted:
			open = 0
		case agent.EventTurnStarted:
			require.Zero(t, open, "turn %d has no end before event %d", open, e.Seq)
			open = e.Turn
		case agent.EventTurnEnded:
			open = 0
		}
	}
}

// checkPairs wants every message with tool calls to be followed by one with
// their results, in order, unless the calls are still open.
func checkPairs(t require.TestingT, s State) {
	if s.isFlow() {
		checkSteps(t, s)
		return
	}
	var asked []agent.ToolCall
	for _, e := range s.Log.Tail {
		if e.Message == nil {
			continue
		}
		if e.Message.Role == agent.RoleTool {
			var results []string
			for _, p := range e.Message.Parts {
				results = append(results, p.Result.Call)
			}
			if asked != nil { // else the calls are sealed already
				require.Equal(t, ids(asked), results, "every call has its result, in order")
			}
			asked = nil
			continue
		}
		require.Empty(t, asked, "calls were left without results before event %d", e.Seq)
		if e.Message.Role == agent.RoleAssistant {
			asked = e.Message.ToolCalls()
		}
	}
	if len(s.Calls.List) == 0 {
		require.Empty(t, asked, "calls were left without results in phase %s", s.phaseName())
	}
}

// checkSteps wants every step of a flow to have one result at most, and the open steps to be
// those without one.
func checkSteps(t require.TestingT, s State) {
	asked, done := map[string]string{}, map[string]bool{}
	for _, e := range s.Log.Tail {
		if e.Message == nil {
			continue
		}
		for _, c := range e.Message.ToolCalls() {
			for id, path := range asked {
				require.False(t, path == c.ProviderID && !done[id], "step %s was asked for while it was open", path)
			}
			asked[c.ID] = c.ProviderID
		}
		for _, p := range e.Message.Parts {
			if p.Result != nil {
				require.False(t, done[p.Result.Call], "step %s has two results", p.Result.Call)
				done[p.Result.Call] = true
			}
		}
	}
	for id := range asked {
		open := slices.ContainsFunc(s.Calls.List, func(c Call) bool { return c.ID == id })
		require.NotEqual(t, done[id], open, "step %s is open, or has its result", id)
	}
}

func ids(calls []agent.ToolCall) (out []string) {
	for _, c := range calls {
		out = append(out, c.ID)
	}
	return out
}
