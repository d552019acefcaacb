package agent

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// EventType names a recorded event (docs/wire.md §9). The set is open: readers skip types
// that they do not know.
type EventType string

// The recorded events of a run. For the live ones see [EventDeltaText] and its
// neighbours.
const (
	EventRunStarted    EventType = "run.started"
	EventRunCompleted  EventType = "run.completed"
	EventRunFailed     EventType = "run.failed"
	EventRunCancelled  EventType = "run.cancelled"
	EventRunStopped    EventType = "run.stopped"
	EventRunSuspended  EventType = "run.suspended"
	EventRunResumed    EventType = "run.resumed"
	EventOwnerFailed   EventType = "owner.failed" // the owner of the suspension does not let the run continue
	EventHoldAdded     EventType = "hold.added"
	EventHoldRemoved   EventType = "hold.removed"
	EventTurnStarted   EventType = "turn.started"
	EventTurnEnded     EventType = "turn.ended"
	EventMessage       EventType = "message"
	EventModelRetried  EventType = "model.retried" // a reply that was cut off is dropped; the model is called again
	EventModelDelayed  EventType = "model.delayed" // the model is called again later, because the provider asked to wait
	EventCallRequested EventType = "call.requested"
	EventCallStarted   EventType = "call.started"
	EventCallDone      EventType = "call.done"
	EventCallUnknown   EventType = "call.unknown" // the call began, and nobody knows how it ended
	EventCallApproved  EventType = "call.approved"
	EventCallRejected  EventType = "call.rejected"

	EventRequestOpened       EventType = "request.opened"
	EventRequestAnswered     EventType = "request.answered"
	EventRequestExpired      EventType = "request.expired"       // its deadline decided it
	EventRequestAnsweredLate EventType = "request.answered_late" // the first answer after its deadline, which decides nothing
	EventRequestReminded     EventType = "request.reminded"
	EventRequestForwarded    EventType = "request.forwarded" // the answer went to the child run that asked

	EventChildStarted   EventType = "child.started"
	EventChildSuspended EventType = "child.suspended"
	EventChildResumed   EventType = "child.resumed"
	EventChildEnded     EventType = "child.ended"

	EventCompacted        EventType = "compacted"         // the model sees a summary of earlier messages
	EventForked           EventType = "forked"            // the run knows the log up to a checkpoint, and nothing after it
	EventLimitExtended    EventType = "limit.extended"    // a person let the run continue past a limit
	EventStateMigrated    EventType = "state.migrated"    // the session's state was migrated to the version of the run's agent
	EventToolsChanged     EventType = "tools.changed"     // a source of tools has other tools now
	EventArtifactSaved    EventType = "artifact.saved"    // a call saved a version of an artifact
	EventSkillMatched     EventType = "skill.matched"     // the skills that fit the task, which may be none
	EventSkillActivated   EventType = "skill.activated"   // the model reads its instructions from now on
	EventSkillDeactivated EventType = "skill.deactivated" // the model reads them no longer, and its narrowing ends
	EventSkillFailed      EventType = "skill.failed"      // a skill that matched or was named could not be read
	EventNotebookUpdated  EventType = "notebook.updated"  // the model wrote a version of its notebook
	EventProgressReported EventType = "progress.reported" // the model said how far it is
	EventLimitMoved       EventType = "limit.moved"       // an adaptive limit has another value
	EventLessonLearned    EventType = "lesson.learned"    // a failure, for an agent that keeps lessons
	EventCheckStarted     EventType = "check.started"     // a check of what the run has done begins
	EventCheckDone        EventType = "check.done"        // a check has given its verdict, or was not finished
	EventVerbRefused      EventType = "verb.refused"      // a signal was refused, and its sender could not be answered

	EventInstructionsChanged EventType = "instructions.changed" // the run has its agent's newest instructions
	EventInstructionsKept    EventType = "instructions.kept"    // they could not be read for refresh_on_resume: the run keeps those that it has
)

// Event is one line of a session's log. The log is the session: its messages, checkpoints
// (turn.ended) and runs are all events. They are numbered without a gap over the
// session's life. Of the pointer fields, only those that belong to the type are set.
type Event struct {
	Seq  int64     `json:"seq"`
	Type EventType `json:"type"`
	Time time.Time `json:"time"`
	Turn int       `json:"turn,omitempty"`

	Started     *Started      `json:"started,omitempty"`
	Message     *Message      `json:"message,omitempty"`
	Call        *CallUpdate   `json:"call,omitempty"`
	Snapshot    *TurnSnapshot `json:"snapshot,omitempty"`
	Outcome     *Outcome      `json:"outcome,omitempty"`
	Suspension  *Suspension   `json:"suspension,omitempty"`
	Resumed     *Resumed      `json:"resumed,omitempty"`
	Hold        *Hold         `json:"hold,omitempty"`
	Request     *Request      `json:"request,omitempty"`
	Answer      *Answered     `json:"answer,omitempty"`
	Child       *ChildUpdate  `json:"child,omitempty"`
	Refusal     *RefusedVerb  `json:"refusal,omitempty"`
	Forked      *Forked       `json:"forked,omitempty"`
	Compaction  *Compaction   `json:"compaction,omitempty"`
	Migrated    *Migrated     `json:"migrated,omitempty"`
	Delay       *Delay        `json:"delay,omitempty"`
	ToolsChange *ToolsChange  `json:"tools_change,omitempty"`
	Artifact    *Artifact     `json:"artifact,omitempty"`
	Skill       *SkillUpdate  `json:"skill,omitempty"`
	// Matched are the skills that fit the task.
	Matched  *SkillMatching `json:"matched,omitempty"`
	Notebook *Notebook      `json:"notebook,omitempty"`
	Progress *Progress      `json:"progress,omitempty"`
	Moved    *LimitMove     `json:"moved,omitempty"`
	Lesson   *Lesson        `json:"lesson,omitempty"`
	Check    *CheckUpdate   `json:"check,omitempty"`
	// OwnerFailed says why the suspension's owner does not let the run continue.
	OwnerFailed *OwnerFailure `json:"owner_failed,omitempty"`
	// Extended is the limit that was extended.
	Extended Code `json:"extended,omitempty"`
	// Instructions are the agent's new ones, or say why the run keeps the old ones.
	Instructions *InstructionsChange `json:"instructions,omitempty"`
}

// Delay says until when a run waits before it calls its model again, and why.
type Delay struct {
	Until time.Time `json:"until"`
	Error *Error    `json:"error"`
}

// Resumed says why a run continues.
type Resumed struct {
	Suspension string    `json:"suspension"`
	Cause      Initiator `json:"cause"`
	By         string    `json:"by,omitempty"`
	// Event and Payload are the event that resumed it.
	Event       string `json:"event,omitempty"`
	FromSummary bool   `json:"from_summary,omitempty"`
	// Mode is what the run continues with. The set is open.
	Mode ResumeMode `json:"mode,omitempty"`
	// Checkpoint is the run's newest checkpoint: see [Suspension.Checkpoint]. Turn is how many turns
	// have begun.
	Checkpoint string `json:"checkpoint,omitempty"`
	Turn       int    `json:"turn,omitempty"`
	// Renewed means that all limits count from zero again, because a daemon was woken.
	Renewed bool `json:"renewed,omitempty"`
}

// ResumeMode is what a run continues with.
type ResumeMode string

// The modes of a resume.
const (
	ResumedContinue ResumeMode = "continue" // with what it had
	ResumedMessage  ResumeMode = "message"  // with a message that came with the resume, or woke a daemon
	ResumedAnswer   ResumeMode = "answer"   // with the answer to a request
	ResumedEvent    ResumeMode = "event"    // with an event
	ResumedFiles    ResumeMode = "files"    // since files that a daemon watches have changed
	ResumedTimeout  ResumeMode = "timeout"  // since a time has come
	ResumedStop     ResumeMode = "stop"     // to make its handoff
)

// Answered says how a request was decided, and by whom.
type Answered struct {
	Request string `json:"request"`
	// Decision is answer, approve or reject.
	Decision string `json:"decision"`
	By       string `json:"by,omitempty"`
	// Approver is the person whom a token proved. By is not authenticated.
	Approver string `json:"approver,omitempty"`
	Edited   bool   `json:"edited,omitempty"` // the call is made with other arguments
	// AlwaysInSession means that all calls of the tool were approved, also in the session's later runs.
	AlwaysInSession bool   `json:"always_in_session,omitempty"`
	Reason          string `json:"reason,omitempty"`
	// Text is the beginning of a late answer. An answer in time is in the call's result.
	Text string `json:"text,omitempty"`
}

// ChildUpdate says what happened to a child run.
type ChildUpdate struct {
	Session string `json:"session"`
	Run     string `json:"run,omitempty"`
	Agent   string `json:"agent"`
	Call    string `json:"call,omitempty"`
	Step    string `json:"step,omitempty"` // see [CallUpdate.Step]
	Status  Status `json:"status"`
	Reason  string `json:"reason,omitempty"`
	// Tokens and Cost are what the run and all runs below it have used. Only child.ended has
	// them.
	Tokens int64 `json:"tokens,omitempty"`
	Cost   USD   `json:"cost_usd,omitempty"`
	// Workspace says what became of the run's own workspace; only child.ended has it.
	Workspace *WorkspaceOutcome `json:"workspace,omitempty"`
}

// Files returns the files that the event names, in order: those of its message, or that of its
// artifact.
func (e Event) Files() (files []*File) {
	if e.Message != nil {
		files = e.Message.Files()
	}
	if e.Artifact != nil {
		files = append(files, &e.Artifact.File)
	}
	return files
}

// Size returns about how many bytes the event takes in a chunk.
func (e Event) Size() int {
	const frame = 96 // the event's own fields in JSON
	switch {
	case e.Message != nil:
		return frame + e.Message.Size()
	case e.Started != nil:
		return frame + len(e.Started.Spec.Instructions) + toolsSize(e.Started.Spec.Toolset) + skillsSize(e.Started.Spec.Skillset)
	case e.ToolsChange != nil:
		return frame + toolsSize(e.ToolsChange.Tools)
	case e.Instructions != nil:
		if bad := e.Instructions.Error; bad != nil {
			return frame + len(bad.Message)
		}
		return frame + len(e.Instructions.Text)
	case e.Outcome != nil:
		return frame + len(e.Outcome.Text) + CitationsSize(e.Outcome.Citations) + len(e.Outcome.Output) + e.Outcome.Handoff.size() + artifactsSize(e.Outcome.Artifacts) + e.Outcome.Report.size()
	case e.Artifact != nil:
		return frame + artifactsSize([]Artifact{*e.Artifact})
	case e.Skill != nil:
		return frame + e.Skill.size()
	case e.Notebook != nil:
		return frame + e.Notebook.Size()
	case e.Progress != nil:
		return frame + e.Progress.size()
	case e.Request != nil:
		return frame + e.Request.size()
	case e.Snapshot != nil:
		return frame + sizeOf(e.Snapshot.StateChanges)
	case e.Lesson != nil:
		return frame + len(e.Lesson.Text)
	case e.OwnerFailed != nil:
		return frame + len(e.OwnerFailed.Reason)
	case e.Delay != nil:
		return 2*frame + len(e.Delay.Error.Message)
	case e.Migrated != nil:
		return frame + sizeOf(e.Migrated.State)
	case e.Check != nil:
		return 2*frame + e.Check.size()
	case e.Child != nil && e.Child.Workspace != nil:
		return 2*frame + e.Child.Workspace.size()
	case e.Suspension != nil:
		n := 2 * frame
		for _, r := range e.Suspension.Requests {
			n += r.size()
		}
		return n
	}
	return frame
}

func toolsSize(tools []ToolSpec) (n int) {
	for _, t := range tools {
		n += len(t.Name) + len(t.Description) + len(t.Input)
	}
	return n
}

func sizeOf(state map[string]json.RawMessage) (n int) {
	for k, v := range state {
		n += len(k) + len(v)
	}
	return n
}

// Started begins a run's part of the log. It holds the whole Spec, so that neither the
// model's input nor the run's state needs a copy.
type Started struct {
	Run   string `json:"run"`
	By    string `json:"by,omitempty"`
	Carry Carry  `json:"carry,omitempty"`
	Spec  *Spec  `json:"spec"`
	// Recovered is the terminated run before this one whose last events were written to
	// the log late. Unrecovered says why they could not be.
	Recovered   string `json:"recovered,omitempty"`
	Unrecovered string `json:"unrecovered,omitempty"`
	// Imported is set if the run continues one that was suspended in another cluster. It
	// continues that run's turn and calls.
	Imported *Imported `json:"imported,omitempty"`
}

// Imported names the run of another cluster that this one continues.
type Imported struct {
	Export string `json:"export"` // the export's id
	Run    string `json:"run"`    // the run there
}

// HasFirstTurn reports whether the run begins with a turn of its own. An imported run
// continues a turn that another run began.
func (s Started) HasFirstTurn() bool { return s.Imported == nil }

// ToolsChange says that a source has other tools now. It happens during a run, or when
// tools that were left out have been accepted. The model gets the new tools with its next
// turn.
type ToolsChange struct {
	// Source is empty for tools of the runtime: they come beside all others.
	Source string     `json:"source"`
	Tools  []ToolSpec `json:"tools"`
	// Left names tools that are left out because nobody has accepted them as they are
	// now; at most 32. The source's own name stands for what it says about its tools.
	Left []string `json:"left,omitempty"`
	// Refused says why the new tools were refused; nil if they were taken. If it is set,
	// Tools is empty, and the model keeps the tools that it had.
	Refused *Error `json:"refused,omitempty"`
}

// ApplyTo returns the spec with the source's tools replaced by these; the same spec if
// they were refused.
func (r ToolsChange) ApplyTo(s Spec) Spec {
	if r.Refused != nil {
		return s
	}
	tools := slices.DeleteFunc(slices.Clone(s.Toolset), func(t ToolSpec) bool { return t.of(r.Source) })
	s.Toolset = append(tools, r.Tools...)
	return s
}

// ToolsOf returns the tools of a source that the spec has.
func (s Spec) ToolsOf(source string) []ToolSpec {
	return slices.DeleteFunc(slices.Clone(s.Toolset), func(t ToolSpec) bool { return !t.of(source) })
}

func (t ToolSpec) of(source string) bool {
	return t.Executor == "" && source != "" && strings.HasPrefix(t.Name, source+SourceSeparator)
}

// SourceSeparator separates the name of a source from the name of its tool.
const SourceSeparator = "__"

// Migrated is a session's state after a migration to the version of its next agent.
type Migrated struct {
	From  int                        `json:"from"`
	To    int                        `json:"to"`
	State map[string]json.RawMessage `json:"state"`
}

// CallUpdate says what happened to a tool call.
type CallUpdate struct {
	Call   string     `json:"call"`
	Tool   string     `json:"tool"`
	Step   string     `json:"step,omitempty"` // the path of a flow's step; empty outside of flows
	Status CallStatus `json:"status,omitempty"`
	// Partial is set in [EventCallDone] if the call was interrupted and its result is what it had by then.
	Partial bool `json:"partial,omitempty"`
	// Dropped means that the flow does not wait for the step any more.
	Dropped bool `json:"dropped,omitempty"`
	// Answers is set in [EventCallStarted]: how many of its own questions the call has answers to. Zero
	// means that the call starts for the first time, or has asked nothing yet (OA-35).
	Answers int `json:"answers,omitempty"`
	// Lifecycle is set in [EventCallRequested] of the tools with which a model suspends itself or
	// manages its sub-agents.
	Lifecycle *LifecycleCall `json:"lifecycle,omitempty"`
}
