package agent

import (
	"encoding/json"
	"time"
)

// Outcome says how a run ended. It is the workflow's result, or the first detail of its
// failure (docs/wire.md §6). client.Run.Wait also returns one for a suspended run.
type Outcome struct {
	V       int    `json:"v"`
	Type    string `json:"type"` // always "outcome"
	Session string `json:"session"`
	Run     string `json:"run"`
	Agent   string `json:"agent"`
	Status  Status `json:"status"`
	Reason  string `json:"reason"`
	By      string `json:"by,omitempty"` // who stopped or cancelled the run, as far as they said; not authenticated
	// Text is the model's last answer.
	Text string `json:"text,omitempty"`
	// Citations are the sources that pieces of Text cite. A sub-agent's outcome has none: its
	// transcript has them.
	Citations []Citation `json:"citations,omitempty"`
	// Output is the answer as JSON, if the agent has an output schema, or if a tool of stop_after gave
	// it.
	Output json.RawMessage `json:"output,omitempty"`
	// Files are files that the answer gives back, at most [MaxFiles]: those of the session that the
	// model's answer names, of what its tools have shown, or those that a flow's function has
	// returned. client.Client.File reads them.
	Files []File `json:"files,omitempty"`
	// Handoff is set if the run was stopped, or if it failed and its recovery hands off.
	Handoff *Handoff `json:"handoff,omitempty"`
	// Artifacts are the last version of each artifact that the run knows: its own, those that the
	// session's earlier runs left to it, and those of sub-agents that have ended, which are in
	// sessions of their own. ArtifactsLeft counts those of sub-agents that are not listed, because
	// they were too many.
	Artifacts     []Artifact `json:"artifacts,omitempty"`
	ArtifactsLeft int        `json:"artifacts_left,omitempty"`
	// Unread are the messages of people and programs that came too late for the model: the
	// session's next run reads them. A sub-agent's outcome has none.
	Unread []UnreadMessage `json:"unread,omitempty"`
	Error  *Error          `json:"error,omitempty"`
	// Unsaved says why the store does not have the run's end, and maybe not its last events; nil if it
	// has them. It changes neither the status nor the answer. The session's next run stores them, or says
	// in its run.started why it can't.
	Unsaved *Error `json:"unsaved,omitempty"`
	// AdaptiveBudget says how limits.adaptive moved; nil without it, and for sub-agents.
	AdaptiveBudget *AdaptiveBudget `json:"adaptive_budget,omitempty"`
	// Verify counts the checks; nil if the agent has none.
	Verify *CheckCount `json:"verify,omitempty"`
	// Workspace says what became of a sub-agent's own workspace; nil if it had none.
	Workspace *WorkspaceOutcome `json:"workspace,omitempty"`
	// Suspension is set only if the run is suspended and has not ended.
	Suspension *Suspension `json:"suspension,omitempty"`

	// Turns, Usage and Cost count the run itself. Tree includes all runs below it.
	Turns int   `json:"turns"`
	Usage Usage `json:"usage"`
	Cost  USD   `json:"cost_usd"`
	Tree  Tally `json:"tree,omitzero"`
	// Tools counts the results of the calls, by tool, in the order of their first call.
	Tools []ToolCount `json:"tools,omitempty"`
	// ToolsMode says which calls the run has made: the agent's text_calls fixes it for all turns.
	// Empty for a flow, for a run that failed before it began, is suspended or was terminated, and in
	// what a parent keeps of a sub-agent.
	ToolsMode ToolsMode `json:"tools_mode,omitempty"`
	Started   time.Time `json:"started"`
	Ended     time.Time `json:"ended,omitzero"`
	// SuspendedFor is how long the run was suspended in total.
	SuspendedFor Duration `json:"suspended_for,omitempty"`
	// Report tells how the run went; nil unless the agent has report: true. A sub-agent's outcome
	// has none.
	Report *RunReport `json:"report,omitempty"`
	// Checkpoint is where another run can go on with exactly this conversation, whatever the session's
	// later runs say: a fork names it (client.ForkOptions), and the session. It lies after the run's
	// end; for a suspended run it is the newest one. Empty if nothing of the run is stored, if its end
	// is not, if it was terminated, or if it is suspended and no worker answers.
	Checkpoint string `json:"checkpoint,omitempty"`
	Seq        int64  `json:"seq"`
}

// UnreadMessage is what a person or program has said too late for the model.
type UnreadMessage struct {
	// Event is the number of the message's event in the session's log.
	Event int64  `json:"event"`
	By    string `json:"by,omitempty"`
	// Text is what was said. It is empty for files without words, and for what is behind the first
	// 32 kB of an outcome's messages: then the log has it.
	Text string `json:"text,omitempty"`
}

// ToolCount counts the results of a tool's calls.
type ToolCount struct {
	Tool     string `json:"tool"`
	Calls    int    `json:"calls"`
	OK       int    `json:"ok"`
	Failed   int    `json:"failed"`
	Rejected int    `json:"rejected"`
	Unknown  int    `json:"unknown"`
	Skipped  int    `json:"skipped"`
}

// OK reports whether the run completed its task.
func (o Outcome) OK() bool { return o.Status == StatusCompleted }

// Decode stores the run's output in a value, as encoding/json does. If the run did not
// complete, it returns [Outcome.Err]. It returns [CodeIncompatible] if the output does
// not fit the value, or if there is none because the agent has no [Definition.Output].
func (o *Outcome) Decode(into any) error {
	if err := o.Err(); err != nil {
		return err
	}
	if err := json.Unmarshal(o.Output, into); err != nil {
		return Errorf(CodeIncompatible, "the output of the run is no %T: %w", into, err)
	}
	return nil
}

// Err returns why the run has no answer; nil if it completed or was stopped.
func (o Outcome) Err() error {
	switch {
	case o.Error != nil:
		return o.Error
	case o.Status == StatusCancelled:
		return Errorf(CodeClosed, "the run was cancelled (%s)", o.Reason)
	}
	return nil
}
