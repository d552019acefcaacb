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

// modelReplied takes the model's reply, or the part of it that came before a hold.
func (s *step) modelReplied(in ModelReplied) {
	r := in.Reply
	// First: a reply that is dropped below was paid too.
	s.chargeReply(r)
	// Not justified: the hold that stopped the activity is removed already, so the call is made
	// again. Its usage is charged above.
	if r.Finish == wire.FinishHeld && r.Hold != nil && !s.justified(*r.Hold) {
		s.recordOutdated(*r.Hold)
		s.askAgain()
		return
	}
	// Before endGrace: a hold that stopped the activity begins a grace here (spread.go). So grace
	// below is set, and the reply's calls are skipped.
	if s.takeMetHold(r.Hold); s.outcomeDecided() {
		return
	}
	// Any reply ends the grace, also one that is then dropped.
	grace := s.End.endGrace()
	switch {
	case s.Turn.Phase == TurnSummarizing:
		s.summaryReplied(r)
		return
	// The conversation is too long. Compacting it needs a summary, which is a new model call.
	// During a grace or a stop, or with a nearly full history, no call begins.
	case r.Finish == wire.FinishTooLong && (grace != nil || s.End.Stopping != nil || s.historyForbidsCalls()):
		s.recordTurnEnd()
		s.Turn.end()
		return
	case r.Finish == wire.FinishTooLong:
		s.Turn.setForceFit()
		s.summarize(SummaryOfOlder)
		return
	}
	m := s.message(r)
	// Only here: a call that is repeated after a compaction must carry the note again. So must the next one
	// if this call was interrupted before the model said anything.
	if r.Finish != wire.FinishHeld || len(m.Parts) > 0 {
		s.Turn.dropNote()
	}
	if r.Finish == wire.FinishHeld {
		// The activity returns only the text of an interrupted reply: no provider takes half
		// a call back (decision 0007).
		if m.Partial = true; len(m.Parts) > 0 {
			s.recordMessage(m, m.Size())
		}
		s.recordTurnEnd()
		s.Turn.end()
		return
	}
	s.takeSkills(r.Skills)
	s.takeReply(in, m, grace)
}

// askAgain repeats a model call that an outdated hold stopped. If the history is nearly
// full, the turn ends instead.
func (s *step) askAgain() {
	switch {
	case s.Turn.Phase == TurnSummarizing && s.Turn.Summary != SummaryOfOlder:
		s.Turn.end() // the rules start the summary again from ready
	case s.historyForbidsCalls():
		s.recordTurnEnd()
		s.Turn.end()
	case s.Turn.Phase == TurnSummarizing:
		s.summarize(SummaryOfOlder) // the turn continues after it
	default:
		s.askModel()
	}
}

// takeReply handles a whole reply. It checks in this order: cut off, refused, paused, empty.
// Then it takes what the reply says.
func (s *step) takeReply(in ModelReplied, m agent.Message, grace *Grace) {
	r := in.Reply
	switch {
	// Before the calls: the arguments of the last one may be cut off.
	case r.Finish == agent.FinishLength:
		s.truncated(m.Model)
		return
	case r.Finish == agent.FinishContentFilter:
		if len(m.Parts) > 0 {
			s.recordMessage(withoutCalls(m), m.Size())
		}
		s.recordTurnEnd()
		err := agent.Errorf(agent.CodeRefusal, "the model %s refused to answer: %s", m.Model, quote(m.Text()))
		s.learn(agent.FailureRefusal, err)
		s.recoverOrFail(agent.FailureRefusal, err)
		return
	case r.Finish == agent.FinishPauseTurn && len(m.Parts) > 0:
		s.providerPaused(m)
		return
	case m.Text() == "" && len(m.ToolCalls()) == 0:
		s.retryReply(m.Model, "it was empty")
		return
	}
	s.mayBeIdle()
	s.Late.read() // only here: a reply that is cut off, refused or empty may be asked for again
	s.recordMessage(m, m.Size())
	s.Turn.setText(m.Text())
	s.Recovery.reset(agent.FailureProvider, agent.FailureRefusal, agent.FailureTruncated)
	if calls := m.ToolCalls(); len(calls) > 0 {
		s.dispatch(calls, in, grace)
		return
	}
	s.recordTurnEnd()
	s.replyWithoutCalls(r, m.Text())
}

// providerPaused keeps a reply that the provider has paused. The model continues it in the next
// turn, so that limits, holds and a stop apply in between.
func (s *step) providerPaused(m agent.Message) {
	s.Late.read()
	s.recordMessage(m, m.Size())
	s.Turn.setText(m.Text())
	s.recordTurnEnd()
	s.Turn.end()
	if s.End.Stopping == nil {
		s.recordOwnText(agent.NotePauseTurn, s.Spec.Text(agent.TextPauseTurn))
	}
}

// message makes a message of a reply, and gives its calls the runtime's ids. It drops files and
// results: no model makes them, and a worker could name another session's file there.
func (s *step) message(r wire.Reply) agent.Message {
	m := agent.Message{Role: agent.RoleAssistant, Model: cmp.Or(r.Model, s.Spec.Model), ProviderModel: r.ProviderModel}
	n := 0
	for _, p := range r.Parts {
		if p.File != nil || p.Result != nil || p.Type == agent.PartFile || p.Type == agent.PartToolResult {
			continue
		}
		if p.Type == agent.PartToolCall && p.Call != nil {
			n++
			// maxCalls rejects further calls with a result each. Beyond maxAsked they are
			// dropped, so that the results are bounded.
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

// retryReply drops a useless reply and asks once more. A second one in a row ends the run.
func (s *step) retryReply(model, why string) {
	s.record(agent.Event{Type: agent.EventModelRetried})
	s.recordTurnEnd()
	if !s.Turn.countUseless() || s.End.Stopping != nil {
		s.failUnlessStopping(agent.Errorf(agent.CodeBadOutput, "the reply of %s was of no use, twice: %s", model, why))
		return
	}
	s.recordOwnText(agent.NoteRetry, s.Spec.Text(agent.TextRetry, "fault", why))
	s.Turn.end()
}

// replyWithoutCalls handles a reply without tool calls.
func (s *step) replyWithoutCalls(r wire.Reply, text string) {
	s.Turn.end()
	if s.End.Stopping != nil { // the handoff has its text; a daemon's next run continues a task that this does not answer
		s.Daemon.keepWorkIf(s.hasFinishTool() || r.OutputError != "")
		return
	}
	// Before the answer counts: a message that waits makes the model continue.
	if s.deliver(true) {
		return
	}
	if s.correctForm(r, text) {
		return
	}
	if r.OutputError != "" {
		s.repair(r.OutputError)
		return
	}
	s.answered(r, text)
}

// badOutput returns the error of an answer that does not fit.
func (s *step) badOutput(fault string) *agent.Error {
	if len(s.Spec.Output) == 0 {
		return agent.Errorf(agent.CodeBadOutput, "the arguments of finish do not fit: %s", fault)
	}
	return agent.Errorf(agent.CodeBadOutput, "the output does not fit the agent's schema: %s", fault)
}

// repair asks for an answer that fits the output's schema, as often as Repairs allows.
func (s *step) repair(fault string) {
	err := s.badOutput(fault)
	again := s.Turn.repair(s.Spec.Repairs)
	s.noteVeto()
	if s.recoverFirst(agent.FailureBadOutput, err) {
		return
	}
	if !again {
		s.recoverOrFail(agent.FailureBadOutput, err)
		return
	}
	s.recordOwnText(agent.NoteRepair, s.Spec.Text(agent.TextRepair, "fault", fault)+s.quoteOutput())
}

// quotedOutput bounds the part of the output's schema that a repair quotes, in bytes: it
// stays in the conversation.
const quotedOutput = 8 << 10

// quoteOutput returns the output's schema for a message that asks for a repair.
func (s *step) quoteOutput() string {
	schema, more := string(s.Spec.Output), ""
	if schema == "" {
		schema = string(finishTool(*s.Spec).Input)
	}
	if len(schema) > quotedOutput {
		schema, more = strings.ToValidUTF8(schema[:quotedOutput], ""), fmt.Sprintf(" … (%d bytes)", len(schema))
	}
	return " The schema is:\n" + schema + more
}

// delayed records until when the provider is not asked.
func (s *step) delayed(in ModelDelayed) {
	why := *in.Err
	// Charges are left out: the reply or the failure that ends the call has all of them.
	why.Message, why.Charges = excerpt.Of(why.Message, bytesWithin(why.Message, maxDelay), len(why.Message)), nil
	d := &agent.Delay{Until: in.Until, Error: &why}
	s.Turn.delay(d)
	s.record(agent.Event{Type: agent.EventModelDelayed, Delay: d})
}

// modelFailed ends the run, unless the call was cancelled or was for a summary. If the call
// may have killed its workers, the run pauses; a resume makes the call again.
func (s *step) modelFailed(err *agent.Error) {
	// CodeInternal without charges is an activity that was cancelled between two attempts, and so
	// could not report its usage.
	if errors.Is(err, agent.CodeInternal) && len(err.Charges) == 0 {
		s.chargeEstimate()
	}
	// The usage is known now, so end and graceOver must not charge an estimate as well.
	s.Budget.setCharged(agent.Usage{})
	s.chargeAll(err.Charges, s.Budget.estimatedCharge())
	grace := s.End.endGrace()
	// Without a summary the model gets the whole conversation again.
	if s.Turn.Phase == TurnSummarizing {
		s.takeSummary("", nil, nil, grace != nil)
		return
	}
	s.recordTurnEnd()
	switch {
	case grace != nil:
		s.Turn.end()
	case err.Code == agent.CodeWorkerLost && s.End.Stopping == nil:
		s.Turn.end()
		s.holdForLostWorkers(err)
	default:
		s.providerFailed(err)
	}
}

// failUnlessStopping fails the run. A run that is being stopped ends only the turn: its
// handoff is still to be made.
func (s *step) failUnlessStopping(err *agent.Error) {
	if s.End.Stopping != nil {
		s.Turn.end()
		return
	}
	s.fail(err)
}

// summaryReplied takes the model's reply to a request for a summary.
func (s *step) summaryReplied(r wire.Reply) {
	m := agent.Message{Parts: r.Parts}
	if s.Turn.Summary == SummaryFinal && m.Text() != "" {
		last := withoutCalls(s.message(r))
		last.Partial = r.Finish == wire.FinishHeld
		s.recordMessage(last, last.Size())
		s.Turn.setText(last.Text())
	}
	text := m.Text()
	unusable := r.Finish == agent.FinishLength || r.Finish == agent.FinishContentFilter
	// Half a summary, or a refusal, would replace the whole conversation.
	if r.Finish == wire.FinishHeld || unusable && s.Turn.Summary == SummaryOfAll {
		text = ""
	}
	s.takeSummary(text, m.FileParts(), r.Compaction, r.Finish == wire.FinishHeld)
}

// takeSummary takes a summary; text is empty if there is none. files are those of the messages that
// it replaces, and c says what of the conversation stays beside it. cancelled means that the call was cancelled.
func (s *step) takeSummary(text string, files []agent.Part, c *agent.Compaction, cancelled bool) {
	// This turn.ended has no turn.started: it records the usage, and gives the next call another
	// AskSeq. A compaction is within a turn, which is not over.
	if s.Turn.Summary != SummaryOfOlder {
		s.recordTurnEnd()
	}
	s.Turn.end()
	switch {
	case s.Turn.Summary == SummaryForHandoff:
		s.End.keepSummary(text)
	case s.Turn.Summary == SummaryFinal: // the run's last text is the summary
		s.End.keepSummary("")
	case s.Turn.Summary == SummaryOfOlder:
		s.compactionReplied(text, files, c, cancelled)
	case s.End.Stopping != nil: // the handoff's summary follows
	case cancelled: // the rules ask again
	case text == "":
		s.Turn.cancelSummarizeFirst() // the whole conversation is better than none
	default:
		s.compacted(text, files, &agent.Compaction{Strategy: agent.CompactionSummarizeAll, Reason: s.Turn.SummaryReason})
		s.Turn.cancelSummarizeFirst()
	}
}

// compactionReplied continues the turn whose conversation was too long. The turn ends if
// the summary was cancelled, under a hold or a stop, if a message interrupted it, if a limit is used up,
// or if the history is nearly full. A whole summary is kept all the same: it is paid, and the next call needs it.
func (s *step) compactionReplied(text string, files []agent.Part, c *agent.Compaction, cancelled bool) {
	if c != nil && !cancelled {
		s.compacted(text, files, c)
	}
	interrupted := s.Messages.interrupts() && s.Revision >= interruptedCompactionSince
	// The summary has used tokens too. The rule for limits applies only between turns.
	if cancelled || interrupted || s.End.Stopping != nil || s.Holds.any() || s.exhaustedLimit() != nil || s.historyForbidsCalls() {
		s.recordTurnEnd()
		return
	}
	s.askModel()
}

// compacted records a summary, with the files of what it replaces: the model reads their names.
func (s *step) compacted(text string, files []agent.Part, c *agent.Compaction) {
	e, bytes := agent.Event{Type: agent.EventCompacted, Compaction: c}, frame+len(text)
	if text != "" {
		m := agent.TextMessage(agent.RoleUser, text)
		m.Note, e.Message = agent.NoteSummary, &m
		if files = s.named(files); len(files) > 0 { // sealed soon: a chunk names only so many files
			m.Parts, bytes = append(m.Parts, files...), bytes+sealAt
		}
	}
	s.recordSized(e, bytes)
}

// withoutCalls returns a message without its calls, for a run that ends before they are
// made.
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

// quote returns a short text on one line, in quotation marks.
func quote(text string) string { return fmt.Sprintf("%q", short(text)) }

// short returns the beginning of a text, on one line.
func short(text string) string {
	const most = 200
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "…"
	}
	return text
}
