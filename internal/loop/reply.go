package loop

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/excerpt"
	"github.com/fermata-agents/fermata/internal/wire"
)

// modelReplied takes the model's answer, whole or what there is of it.
func (s *step) modelReplied(in ModelReplied) {
	r := in.Reply
	s.chargeReply(r)
	if r.Finish == wire.FinishHeld && r.Hold != nil && !s.justified(*r.Hold) {
		s.outdated(*r.Hold)
		s.askAgain()
		return
	}
	if s.takeMetHold(r.Hold); s.decided() {
		return
	}
	aborted := s.End.endAbort()
	switch {
	case s.Turn.Phase == TurnSummarizing:
		s.summaryReplied(r)
		return
	case r.Finish == wire.FinishTooLong && (aborted != nil || s.End.Stopping != nil || s.historyNearlyFull()):
		s.endTurn()
		s.Turn.end()
		return
	case r.Finish == wire.FinishTooLong:
		s.Turn.setForceFit()
		s.summarize(SummaryForCompaction)
		return
	}
	s.Turn.dropNote()
	m := s.message(r)
	if r.Finish == wire.FinishHeld {
		if m.Partial = true; len(m.Parts) > 0 {
			s.recordMessage(m, m.Size())
		}
		s.endTurn()
		s.Turn.end()
		return
	}
	s.takeReply(in, m, aborted)
}

// askAgain makes a model call once more that was given up for a hold which is over. In a
// history that has no room for it the turn is over.
func (s *step) askAgain() {
	switch {
	case s.Turn.Phase == TurnSummarizing && s.Turn.Summary != SummaryForCompaction:
		s.Turn.end() // it begins anew from there
	case s.historyNearlyFull():
		s.endTurn()
		s.Turn.end()
	case s.Turn.Phase == TurnSummarizing:
		s.summarize(SummaryForCompaction) // in the turn that waits for it
	default:
		s.askModel()
	}
}

// takeReply looks at a whole reply in this order: cut off, refused, paused, empty, then what
// it says.
func (s *step) takeReply(in ModelReplied, m agent.Message, aborted *Aborting) {
	r := in.Reply
	switch {
	case r.Finish == agent.FinishLength:
		s.retryReply(m.Model, "it was cut off at its output limit; ask for less, or raise max_output_tokens")
		return
	case r.Finish == agent.FinishContentFilter:
		if len(m.Parts) > 0 {
			s.recordMessage(withoutCalls(m), m.Size())
		}
		s.endTurn()
		s.failUnlessStopping(agent.Errorf(agent.CodeRefusal, "the model %s refused to answer: %s", m.Model, quote(m.Text())))
		return
	case r.Finish == agent.FinishPauseTurn && len(m.Parts) > 0:
		s.replyPaused(m)
		return
	case m.Text() == "" && len(m.ToolCalls()) == 0:
		s.retryReply(m.Model, "it was empty")
		return
	}
	s.recordMessage(m, m.Size())
	s.Turn.setText(m.Text())
	if calls := m.ToolCalls(); len(calls) > 0 {
		s.Turn.acted()
		s.dispatch(calls, in, aborted)
		return
	}
	s.endTurn()
	s.answered(r, m.Text())
}

// replyPaused keeps a reply that the provider has paused, and lets the model go on with it in a
// turn of its own: limits, holds and a stop come between as between any others.
func (s *step) replyPaused(m agent.Message) {
	s.recordMessage(m, m.Size())
	s.Turn.setText(m.Text())
	s.endTurn()
	s.Turn.end()
	if s.End.Stopping == nil {
		s.recordNote(agent.NotePauseTurn, "Go on.")
	}
}

// message gives a reply's calls our ids and makes it a message.
func (s *step) message(r wire.Reply) agent.Message {
	m := agent.Message{Role: agent.RoleAssistant, Model: cmp.Or(r.Model, s.Spec.Model), ProviderModel: r.ProviderModel}
	n := 0
	for _, p := range r.Parts {
		if p.Type == agent.PartToolCall && p.Call != nil {
			n++
			if n > maxAsked {
				continue
			}
			c := *p.Call
			if c.ID = callID(s.Turn.N, n); jsonLen(c.ProviderID) > maxProviderID {
				c.ProviderID = ""
			}
			p.Call = &c
		}
		m.Parts = append(m.Parts, p)
	}
	return m
}

// retryReply drops a reply and asks once more; a second one in a row ends the run.
func (s *step) retryReply(model, why string) {
	s.record(agent.Event{Type: agent.EventModelRetried})
	s.endTurn()
	if !s.Turn.useless() || s.End.Stopping != nil {
		s.failUnlessStopping(agent.Errorf(agent.CodeBadOutput, "the reply of %s was of no use, twice: %s", model, why))
		return
	}
	s.recordNote(agent.NoteRetry, "Your last reply could not be used: "+why+". Answer again, more briefly where you can.")
	s.Turn.end()
}

// answered decides what a reply without tool calls means.
func (s *step) answered(r wire.Reply, text string) {
	s.Turn.end()
	if s.End.Stopping != nil { // its text is in the handoff
		s.Daemon.keepWorkIf(s.hasFinishTool() || r.OutputError != "")
		return
	}
	if s.deliver(true) {
		return // it goes on with what was sent
	}
	if s.Spec.Completion == agent.CompletionTool {
		s.nudge()
		return
	}
	if r.OutputError != "" {
		s.repair(r.OutputError)
		return
	}
	s.complete(agent.ReasonDone, text, r)
}

const nudgeText = "You have not called a tool. Go on with the task; when it is done, call the tool finish."

func (s *step) nudge() {
	if !s.Turn.nudge(s.Spec.Nudges) {
		s.fail(agent.Errorf(agent.CodeStuck, "the model answered %d times in a row without calling a tool; it must call %q to end", s.Turn.Nudged, agent.FinishTool))
		return
	}
	s.recordNote(agent.NoteNudge, cmp.Or(s.Spec.Nudge, nudgeText))
}

func (s *step) repair(fault string) {
	if !s.Turn.repair(s.Spec.Repairs) {
		s.fail(agent.Errorf(agent.CodeBadOutput, "the output does not fit the agent's schema: %s", fault))
		return
	}
	s.recordNote(agent.NoteRepair, "Your answer does not fit the schema of the output: "+fault+"\nAnswer again with JSON that fits it, and with nothing else."+s.quoteOutput())
}

// quotedOutput bounds what a repair quotes of the output's schema, in bytes: it stays in
// the conversation.
const quotedOutput = 8 << 10

// quoteOutput is the output's schema for a message that asks for a repair.
func (s *step) quoteOutput() string {
	schema, more := string(s.Spec.Output), ""
	if len(schema) > quotedOutput {
		schema, more = strings.ToValidUTF8(schema[:quotedOutput], ""), fmt.Sprintf(" … (%d bytes)", len(schema))
	}
	return " The schema is:\n" + schema + more
}

// delayed tells that the model is not asked until a time.
func (s *step) delayed(in ModelDelayed) {
	why := *in.Err
	why.Message, why.Charges = excerpt.Of(why.Message, bytesWithin(why.Message, maxDelay), len(why.Message)), nil
	d := &agent.Delay{Until: in.Until, Error: &why}
	s.Turn.delay(d)
	s.record(agent.Event{Type: agent.EventModelDelayed, Delay: d})
}

// modelFailed ends the run, but not if the call was given up anyway or was for a summary.
// A call that may be what ends its workers is made again when somebody says so.
func (s *step) modelFailed(err *agent.Error) {
	if errors.Is(err, agent.CodeInternal) && len(err.Charges) == 0 { // it was given up between attempts
		s.chargeEstimate()
	}
	s.Budget.setCharged(agent.Usage{})
	s.chargeAll(err.Charges)
	aborted := s.End.endAbort()
	if s.Turn.Phase == TurnSummarizing {
		s.takeSummary("", nil, aborted != nil)
		return
	}
	s.endTurn()
	switch {
	case aborted != nil:
		s.Turn.end()
	case err.Code == agent.CodeWorkerLost && s.End.Stopping == nil:
		s.Turn.end()
		s.holdForLostWorkers(err)
	default:
		s.failUnlessStopping(err)
	}
}

// failUnlessStopping ends the run for what its model did, or only the turn while the run is
// being stopped: it owes its handoff.
func (s *step) failUnlessStopping(err *agent.Error) {
	if s.End.Stopping != nil {
		s.Turn.end()
		return
	}
	s.fail(err)
}

// summaryReplied takes a model's answer to the question for a summary.
func (s *step) summaryReplied(r wire.Reply) {
	m := agent.Message{Parts: r.Parts}
	text := m.Text()
	if r.Finish == wire.FinishHeld {
		text = ""
	}
	s.takeSummary(text, r.Compaction, r.Finish == wire.FinishHeld)
}

// takeSummary takes the summary, which is empty if the model gave none, and what of the
// conversation stays beside it. aborted means that it was given up.
func (s *step) takeSummary(text string, c *agent.Compaction, aborted bool) {
	if s.Turn.Summary != SummaryForCompaction {
		s.endTurn() // what it has cost; and the next model call has another place in the log
	}
	s.Turn.end()
	switch {
	case s.Turn.Summary == SummaryForHandoff:
		s.End.keepSummary(text)
	case s.Turn.Summary == SummaryForCompaction:
		s.compactionReplied(text, c, aborted)
	case s.End.Stopping != nil: // it is asked for another
	case aborted: // it is asked for again
	case text == "":
		s.Turn.cancelFromSummary() // all that was said is better than nothing of it
	default:
		s.compacted(text, &agent.Compaction{Strategy: agent.CompactionSummarizeAll, Reason: s.Turn.SummaryReason})
		s.Turn.cancelFromSummary()
	}
}

// compactionReplied goes on with the turn for which the conversation was too long. If the
// summary was given up, or has used up a limit, or the history has no room, the turn is over.
func (s *step) compactionReplied(text string, c *agent.Compaction, aborted bool) {
	if aborted || s.End.Stopping != nil || s.Holds.any() {
		s.endTurn()
		return
	}
	if c != nil {
		s.compacted(text, c)
	}
	if s.exhaustedLimit() != nil || s.historyNearlyFull() {
		s.endTurn()
		return
	}
	s.askModel()
}

func (s *step) compacted(text string, c *agent.Compaction) {
	e := agent.Event{Type: agent.EventCompacted, Compaction: c}
	if text != "" {
		m := agent.TextMessage(agent.RoleUser, text)
		m.Note, e.Message = agent.NoteSummary, &m
	}
	s.recordSized(e, frame+len(text))
}

// withoutCalls drops the calls of a message whose run ends before they are made.
func withoutCalls(m agent.Message) agent.Message {
	var parts []agent.Part
	for _, p := range m.Parts {
		if p.Type != agent.PartToolCall {
			parts = append(parts, p)
		}
	}
	m.Parts = parts
	return m
}

// quote shortens a text for a message on one line.
func quote(text string) string { return fmt.Sprintf("%q", short(text)) }

// short is the beginning of a text, in one line.
func short(text string) string {
	const most = 200
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "…"
	}
	return text
}
