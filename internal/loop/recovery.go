package loop

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Recovery is the part that counts failures by kind, for what the Spec's recovery says about them
// (docs/recovery.md). It is zero if the Spec names no kind.
type Recovery struct {
	Counts []FailureCount `json:"counts,omitempty"`
	// Note goes to the model behind the results of the turn's calls. NoteBytes is what it counts in
	// the log: see step.noteBytes.
	Note      string `json:"note,omitempty"`
	NoteBytes int    `json:"note_bytes,omitempty"`
	// Skip is how many models of the chain are not asked any more, because they refused.
	Skip int `json:"skip,omitempty"`
}

// FailureCount is how often in a row a kind of failure came; Tool is set for failures of tools.
type FailureCount struct {
	Kind agent.FailureKind `json:"kind"`
	Tool string            `json:"tool,omitempty"`
	N    int               `json:"n"`
}

// maxRecoveryNote bounds the note, in JSON bytes.
const maxRecoveryNote = 8 << 10

// maxFailureCounts bounds the counts. Only failing tools can be many: the oldest count is dropped.
const maxFailureCounts = 32

func (r Recovery) clone() Recovery {
	r.Counts = slices.Clone(r.Counts)
	return r
}

// count counts a failure, and returns how many of them came in a row.
func (r *Recovery) count(kind agent.FailureKind, tool string) int {
	i := slices.IndexFunc(r.Counts, func(c FailureCount) bool { return c.Kind == kind && c.Tool == tool })
	if i < 0 {
		if len(r.Counts) >= maxFailureCounts {
			r.Counts = r.Counts[1:]
		}
		r.Counts, i = append(r.Counts, FailureCount{Kind: kind, Tool: tool}), len(r.Counts)
	}
	r.Counts[i].N++
	return r.Counts[i].N
}

// reset forgets the failures of some kinds: something else succeeded.
func (r *Recovery) reset(kinds ...agent.FailureKind) {
	r.drop(func(c FailureCount) bool { return slices.Contains(kinds, c.Kind) })
}

// resetTool forgets the failures of a tool.
func (r *Recovery) resetTool(tool string) {
	r.drop(func(c FailureCount) bool { return c.Kind == agent.FailureToolError && c.Tool == tool })
}

func (r *Recovery) drop(which func(FailureCount) bool) {
	if r.Counts = slices.DeleteFunc(r.Counts, which); len(r.Counts) == 0 {
		r.Counts = nil
	}
}

// resetAll forgets all failures: a person let the run continue, or a daemon was woken.
func (r *Recovery) resetAll() { r.Counts = nil }

// setNote sets the message behind the turn's results; takeNote takes it, and dropNote drops it.
func (r *Recovery) setNote(text string, bytes int) {
	r.Note = fit(text, maxRecoveryNote)
	r.NoteBytes = min(bytes, maxRecoveryNote)
}

func (r *Recovery) takeNote() (text string, bytes int) {
	text, bytes, r.Note, r.NoteBytes = r.Note, r.NoteBytes, "", 0
	return text, bytes
}

func (r *Recovery) dropNote() { r.Note, r.NoteBytes = "", 0 }

// skipModel passes over the model that refused.
func (r *Recovery) skipModel() { r.Skip++ }

// Failure is why a run hands off.
type Failure struct {
	Kind  agent.FailureKind `json:"kind"`
	Error *agent.Error      `json:"error"`
	// Final means that the model gets one last reply, instead of being asked for a summary.
	Final bool `json:"final,omitempty"`
	// Reported is what the model said with [agent.ReturnUnableTool].
	Reported Unable `json:"reported,omitzero"`
	// AtOnce means that the handoff is made of what the run knows: no sub-agent is waited for.
	AtOnce bool `json:"at_once,omitempty"`
}

// of returns the handoff of a run that fails.
func (f *Failure) of(h agent.Handoff) agent.Handoff {
	h.Status, h.Rationale, h.Blockers, h.NextSteps = agent.StatusFailed, f.Reported.Rationale, f.Reported.Blockers, f.Reported.NextSteps
	if h.Rationale == "" {
		h.Rationale = fmt.Sprintf("The run met a failure of kind %s, and the agent's recovery hands off.", f.Kind)
		if f.AtOnce {
			h.Rationale = fmt.Sprintf("The run met a failure of kind %s.", f.Kind)
		}
	}
	if len(h.Blockers) == 0 {
		h.Blockers = []string{f.Error.Message}
	}
	h.Summary = firstOf(h.Summary, f.Reported.Rationale)
	return h
}

// Unable are the arguments of [agent.ReturnUnableTool].
type Unable struct {
	Blockers  []string `json:"blockers,omitempty"`
	Rationale string   `json:"rationale,omitempty"`
	NextSteps []string `json:"next_steps,omitempty"`
}

// Bounds of what a model says with return_unable, in JSON bytes of one text, and in texts.
const (
	maxUnableText  = 512
	maxUnableTexts = 16
)

// readUnable reads the arguments of return_unable, within bounds. They fit the tool's schema.
func readUnable(raw json.RawMessage) (u Unable) {
	var said struct {
		Blockers  []string
		Rationale string
		NextSteps []string `json:"next_steps"`
	}
	if json.Unmarshal(raw, &said) != nil {
		return Unable{Rationale: fit(string(raw), maxReason)}
	}
	few := func(texts []string) (kept []string) {
		for _, t := range texts[:min(len(texts), maxUnableTexts)] {
			kept = append(kept, fit(t, maxUnableText))
		}
		return kept
	}
	return Unable{Blockers: few(said.Blockers), Rationale: fit(said.Rationale, maxReason), NextSteps: few(said.NextSteps)}
}

// silentHandoffs are the kinds after which the model is asked for no summary: it can't answer, has
// said all, or may use no more.
var silentHandoffs = []agent.FailureKind{agent.FailureRefusal, agent.FailureProvider, agent.FailureUnable, agent.FailureLimitTokens, agent.FailureLimitCost}

// unsaidHandoffs are the kinds after which a run hands off at once if the Spec's recovery does not
// name them.
var unsaidHandoffs = []agent.FailureKind{agent.FailureRefusal, agent.FailureProvider}

// recover does what the Spec's recovery says about a failure. It reports false if that names
// nothing: then the caller does the default. tool is the tool that fails, if one does. The turn is
// over, or its calls have not begun. Only the time limit also comes while the model is asked.
func (s *step) recover(kind agent.FailureKind, tool string, err *agent.Error) bool {
	r, named := s.Spec.Recovery[kind]
	return named && s.recoverBy(r, kind, tool, err)
}

// recoverBy is recover with a remedy that the Spec need not name.
func (s *step) recoverBy(r agent.Remedy, kind agent.FailureKind, tool string, err *agent.Error) bool {
	if s.End.Stopping != nil || s.outcomeDecided() {
		return false
	}
	// At the time limit the call is still in flight: whatever ends the run cancels and charges it.
	if s.Turn.Phase == TurnAsking && kind != agent.FailureLimitTime {
		s.Turn.end()
	}
	n := s.Recovery.count(kind, tool)
	if lastModel := r.Do == agent.RecoverFallback && s.Recovery.Skip+1 >= len(s.Spec.Models()); n <= r.Attempts() && !lastModel {
		s.tryAgain(kind, r, err)
		return true
	}
	s.Recovery.reset(kind)
	s.conclude(kind, r.After(), err)
	return true
}

// recoverFirst is recover for kinds that have attempts of their own, such as nudges: a remedy with
// attempts replaces those. Any other remedy follows them.
func (s *step) recoverFirst(kind agent.FailureKind, err *agent.Error) bool {
	s.learn(kind, err)
	return s.Spec.Recovery[kind].Attempts() > 0 && s.recover(kind, "", err)
}

// recoverOrFail is the end of a failure for which nothing is left to try.
func (s *step) recoverOrFail(kind agent.FailureKind, err *agent.Error) {
	switch {
	case s.recover(kind, "", err):
	case slices.Contains(unsaidHandoffs, kind) && s.End.Stopping == nil && !s.outcomeDecided():
		s.handOffAtOnce(Failure{Kind: kind, Error: err, AtOnce: true})
	default:
		s.failUnlessStopping(err)
	}
}

// tryAgain lets the run go on by itself.
func (s *step) tryAgain(kind agent.FailureKind, r agent.Remedy, err *agent.Error) {
	switch r.Do {
	case agent.RecoverFallback:
		s.Recovery.skipModel()
	case agent.RecoverCompact:
		s.Turn.summarizeFirst(agent.CompactedForRecovery)
	}
	text, bytes := r.Text, len(r.Text)
	if text == "" {
		text = s.correction(kind, err)
		bytes = s.noteBytes()
	}
	switch {
	case kind == agent.FailureProvider, kind == agent.FailureToolError && r.Do == agent.RecoverRetry: // the model has said nothing wrong
	case s.Turn.Phase == TurnWorking: // behind the results
		s.Recovery.setNote(text, bytes)
	default:
		s.recordNoteSized(agent.NoteRecovery, text, bytes)
	}
	if kind == agent.FailureLoop || kind == agent.FailurePolicyViolation && r.Do != agent.RecoverCorrect {
		s.skipPending(short(err.Message))
	}
}

// faultForModel returns what a model reads of a failure in a message of role user: words of the
// runtime, on one line. What a tool or a provider said is not in it, since a model takes such a message
// for the user's; it stays in the call's result. What the model itself said is quoted.
func faultForModel(kind agent.FailureKind, err *agent.Error) string {
	what, said, _ := strings.Cut(err.Message, ": ")
	switch kind {
	case agent.FailureToolError:
		return short(what) + "; its result says why"
	case agent.FailureProvider:
		return "the model's provider failed with " + string(err.Code)
	case agent.FailureBadOutput, agent.FailureUnable:
		return short(what) + ": " + quote(said)
	}
	return short(err.Message)
}

// correction returns the runtime's message about a failure.
func (s *step) correction(kind agent.FailureKind, err *agent.Error) string {
	switch {
	case kind == agent.FailureNoProgress && s.Turn.Nudged > 0: // the last reply had no call; else its calls failed
		return s.nudgeText()
	case kind == agent.FailureRefusal:
		return s.Spec.Text(agent.TextRecoveryRefusal)
	case kind == agent.FailureBadOutput:
		return s.Spec.Text(agent.TextRecoveryOutput) + s.quoteOutput()
	}
	return s.Spec.Text(agent.TextRecovery, "fault", faultForModel(kind, err))
}

// conclude asks a person, hands off, or fails.
func (s *step) conclude(kind agent.FailureKind, do agent.RecoveryAction, err *agent.Error) {
	switch do {
	case agent.RecoverAsk:
		s.askAbout(kind, err)
	case agent.RecoverHandoff, agent.RecoverFinalize:
		s.skipPending(short(err.Message)) // before the stop, which would say that somebody stopped the run
		s.handOff(Failure{Kind: kind, Error: err, Final: do == agent.RecoverFinalize})
	default:
		s.fail(err)
	}
}

// askAbout asks a person about a failure, as at a limit.
func (s *step) askAbout(kind agent.FailureKind, err *agent.Error) {
	// The run may continue after the answer, so the calls need results.
	s.skipPending(short(err.Message))
	// A provider refuses a conversation that ends with the model's own words.
	if s.Turn.Phase == TurnReady && slices.Contains([]agent.FailureKind{agent.FailureRefusal, agent.FailureNoProgress, agent.FailureBadOutput}, kind) {
		s.recordOwnText(agent.NoteRecovery, s.Spec.Text(agent.TextRecoveryAsked, "fault", faultForModel(kind, err)))
	}
	s.askLimit(err)
}

// finalizeGrace is how long a run may take for its last reply and its handoff.
const finalizeGrace = agent.Duration(45 * time.Second)

// bounded returns the failure's error as the State keeps it.
func (f Failure) bounded() *agent.Error {
	e := *f.Error
	e.Message, e.Path, e.Err, e.Charges = fit(e.Message, maxReason), fit(e.Path, maxName), nil, nil
	return &e
}

// handOff ends the run as a stop does, with a handoff. But it fails, with the failure's error.
func (s *step) handOff(f Failure) {
	f.Error = f.bounded()
	s.resumed = agent.Resumed{Cause: agent.InitiatorPolicy}
	o := agent.StopCommand{Deadline: defaultDeadline}
	o.Reason = string(f.Error.Code)
	if f.Final {
		o.Deadline = finalizeGrace
	}
	if err := s.stop(o); err != nil {
		s.fail(f.Error)
		return
	}
	s.End.failed(f)
}

// handOffAtOnce fails the run with a handoff of what it knows now. It costs no call and no wait:
// nobody asked for the handoff, so the end is as quick as without it, and it cancels the sub-agents.
func (s *step) handOffAtOnce(f Failure) {
	if s.Turn.Phase == TurnAsking {
		s.Turn.end()
	}
	f.Error = f.bounded()
	s.resumed = agent.Resumed{Cause: agent.InitiatorPolicy}
	s.End.startStop(agent.StopCommand{Reason: string(f.Error.Code)}, s.At)
	for _, r := range s.Requests.Open {
		s.End.addClosedRequest(s.wireRequest(r))
	}
	s.End.failed(f)
	s.makeHandoff()
}
