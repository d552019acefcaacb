package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Definition is an agent as its author writes it, in Go or in an agents file. Its name and its
// model are required; everything else has a default. In Go a number of zero is not set. In an agents
// file a zero that would mean the default is refused.
type Definition struct {
	// Name is the agent's name: 1 to 32 lower-case letters, digits or "_", beginning with a
	// letter. In an agents file it is the key, so leave it out there.
	Name string `json:"name"`
	// Description says what the agent is for. People and other agents read it.
	Description string `json:"description,omitempty"`
	// Model is the full name of a model that the worker has, such as
	// "anthropic/claude-sonnet-5".
	Model string `json:"model"`
	// Fallbacks are full names of models that the worker asks, in this order, when the model
	// fails and another model may not.
	Fallbacks []string `json:"fallbacks,omitempty"`
	// Instructions are the first thing that the model reads.
	Instructions string `json:"instructions,omitempty"`
	// Tools are the names of the agent's tools; "mcp:SERVER" stands for all tools of an MCP
	// server. The runtime itself has the tools ask_user, await_resumption,
	// wait_for_user, report_progress, save_artifact, todo and memory.
	Tools []string `json:"tools,omitempty"`
	// AwaitResumption says whether the model has the tool await_resumption, with which it suspends
	// its own run; nil means yes if the agent works in a loop.
	AwaitResumption *bool `json:"await_resumption,omitempty"`
	// Skills are the names of the agent's skills; "*" stands for all skills of the worker's
	// directories. "mcp:SERVER" stands for all skills that an MCP server serves, and
	// "mcp:SERVER/SKILL" for one, by its name or its URI. The model knows their names and
	// descriptions, and loads one with the tool skill.
	Skills []string `json:"skills,omitempty"`
	// SkillMatch activates the skills that fit a run's task; nil leaves that to the model.
	SkillMatch *SkillMatch `json:"skill_match,omitempty"`
	// ClientTools are tools that the client carries out. A call is a request, and the
	// client's answer is its result.
	ClientTools []ToolSpec `json:"client_tools,omitempty"`
	// Rules are the rules for tool calls: which are made, which need an approval, and which are
	// refused.
	Rules []Rule `json:"rules,omitempty"`
	// Default decides about calls that no rule matches; empty means allow. The runtime's own
	// tools, such as ask_user and finish, need no rule.
	Default Ruling `json:"default,omitempty"`
	// AnswerTimeouts is how long questions, limits and client tools wait for an answer.
	AnswerTimeouts AnswerTimeouts `json:"answer_timeouts,omitzero"`
	// Agents are the sub-agents that this agent may give work to.
	Agents []SubAgent `json:"agents,omitempty"`
	// Lifecycle gives the model tools to list, pause, resume, stop and wait for its
	// sub-agents.
	Lifecycle bool `json:"lifecycle,omitempty"`
	// OnChildSuspend says what a call that waits for a sub-agent does when that one is suspended: it
	// waits on, or returns.
	OnChildSuspend ChildSuspendAction `json:"on_child_suspend,omitempty"`
	// Ceiling names the tools, or patterns of tools, that this agent and all agents below it
	// may use at most; empty means that there is no such bound. A tool of the provider is named
	// with [ServerToolPrefix]. The runtime's own tools are in no ceiling.
	Ceiling []string `json:"ceiling,omitempty"`
	// Role names a role, such as reviewer, that fills in what is left out here: instructions,
	// limits, nudges, rules and others. fermata roles ls lists the roles.
	Role string `json:"role,omitempty"`
	// Profile sets the defaults of limits.own_turns, nudges and repairs.
	Profile Profile `json:"profile,omitempty"`
	// Limits are how much a run may use.
	Limits Limits `json:"limits,omitzero"`
	// OnLimit says what happens when a run reaches a limit: it fails, asks what to do, or, at a
	// limit of turns or time, gives the model one last reply (finalize).
	OnLimit LimitAction `json:"on_limit,omitempty"`
	// OnLoop says what happens when the model repeats one call again and again: the run
	// fails, or it asks what to do.
	OnLoop LimitAction `json:"on_loop,omitempty"`
	// Recovery says what happens after failures, by their kind: retry, correct, ask, hand off.
	// A kind that is not named has its default.
	Recovery Recovery `json:"recovery,omitempty"`
	// Lessons tells the model with each request what has failed in the session: the newest
	// failure of each kind, five at most.
	Lessons bool `json:"lessons,omitempty"`
	// Reminders are texts with which each request ends; at most 8. Sub-agents can have them too.
	Reminders []Reminder `json:"reminders,omitempty"`
	// LoopDetection finds repetitions beside six equal calls in a row; on_loop says what follows.
	LoopDetection LoopDetection `json:"loop_detection,omitzero"`
	// Completion says what ends a run: a final text (natural), or a call of the tool finish
	// (tool).
	Completion Completion `json:"completion,omitempty"`
	// Nudges is how many replies in a row may have no tool call under completion "tool"; zero
	// means the profile's number, and -1 none. After them the run fails with the code [CodeStuck].
	Nudges int `json:"nudges,omitempty"`
	// Nudge is the answer to a reply without a tool call under completion "tool"; empty means
	// a text of the runtime's.
	Nudge string `json:"nudge,omitempty"`
	// DoneSentinel is a text that marks the end, such as "##DONE##": a reply without a tool call
	// ends the run only if it ends with the text, or has it on a line of its own. Empty means
	// that any reply without a tool call ends the run. The outcome's text leaves it out.
	DoneSentinel string `json:"done_sentinel,omitempty"`
	// StopAfter are tools whose successful call ends the run. The other calls of the turn are
	// made, and the call's result is the answer.
	StopAfter []string `json:"stop_after,omitempty"`
	// TurnPolicy bounds the form of a turn; nil means any form.
	TurnPolicy *TurnPolicy `json:"turn_policy,omitempty"`
	// TextCalls says what is done with tool calls that the model writes as text; empty means
	// that they are text. Text from outside that the model repeats can become a call.
	TextCalls TextCalls `json:"text_calls,omitempty"`
	// TimestampMessages shows the model when each message was written. The transcript does not
	// change.
	TimestampMessages bool `json:"timestamp_messages,omitempty"`
	// ToolSearch offers few tools at first, and the tool tool_search to find others; nil means
	// that all are offered.
	ToolSearch *ToolSearch `json:"tool_search,omitempty"`
	// ToolNarrowing hides tools that only read and are not used; nil means that none is hidden.
	ToolNarrowing *ToolNarrowing `json:"tool_narrowing,omitempty"`
	// Report adds to the outcome how the run went: its turns, and counts of what happened.
	Report bool `json:"report,omitempty"`
	// Texts replace texts of the runtime that the model reads, by their names. The function Texts
	// lists them.
	Texts map[TextName]string `json:"texts,omitempty"`
	// Require lists tools that must have succeeded before a run may complete. An entry may be
	// a list of names: then one of them is enough.
	Require []OneOf `json:"require,omitempty"`
	// Output is a JSON Schema of the final answer; empty means free text. In Go,
	// model.OutputOf derives it from a type.
	Output json.RawMessage `json:"output,omitempty"`
	// Verify says what is checked before a run completes; empty checks nothing.
	Verify Verify `json:"verify,omitzero"`
	// Hooks are checks at other points of a run; empty makes none.
	Hooks Hooks `json:"hooks,omitzero"`
	// Repairs is how often the model may correct an answer that does not fit the output
	// schema; zero means the profile's number, and -1 never.
	Repairs int `json:"repairs,omitempty"`
	// ParallelTools is how many calls of one turn run at once; zero means 8.
	ParallelTools int `json:"parallel_tools,omitempty"`
	// ModelTimeout is how long one attempt at a model call may take; zero means 10m.
	ModelTimeout Duration `json:"model_timeout,omitempty"`
	// ModelSilence is how long a model call may wait for the next piece of a reply; zero
	// means 60s.
	ModelSilence Duration `json:"model_silence,omitempty"`
	// ModelAttempts is how often a model call is tried; zero means 4. Between attempts the
	// worker waits 2s, 4s, 8s … 30s, or as long as the provider asks.
	ModelAttempts int `json:"model_attempts,omitempty"`
	// MaxOutputTokens is how many tokens one reply may have; zero means the model's own bound.
	MaxOutputTokens int `json:"max_output_tokens,omitempty"`
	// Temperature is the model's sampling temperature; nil means the provider's default.
	Temperature *float64 `json:"temperature,omitempty"`
	// Reasoning is how much the model and its fallbacks think before they answer; empty means
	// reasoning_policy, or each provider's default.
	Reasoning Reasoning `json:"reasoning,omitempty"`
	// ReasoningPolicy chooses the level of reasoning by what each model call is for; nil means no
	// policy. A level in Reasoning wins over it, also one that the role fills in.
	ReasoningPolicy *ReasoningPolicy `json:"reasoning_policy,omitempty"`
	// ResumeWithin is how long after its suspension a run can be resumed or answered; zero
	// means forever. Later, both are refused with the code
	// [CodeExpired].
	ResumeWithin Duration `json:"resume_within,omitempty"`
	// RefreshOnResume gives a run, at the end of each suspension, the instructions that its agent
	// has then in the worker's build. False means that it keeps those with which it began.
	RefreshOnResume bool `json:"refresh_on_resume,omitempty"`
	// Retention is how long a session is kept after its last run has ended; zero means forever.
	// The agent of that run decides. Sessions of sub-agents are kept as long as their parent's.
	Retention Duration `json:"retention,omitempty"`
	// Compaction says how a long conversation is made to fit the model's window.
	Compaction CompactionPolicy `json:"compaction,omitzero"`
	// Notebook gives the model a notebook that it reads at the end of every request; nil means none.
	Notebook *NotebookPolicy `json:"notebook,omitempty"`
	// Daemon makes the agent idle instead of ending; nil means that it ends.
	Daemon *Daemon `json:"daemon,omitempty"`
	// Redact keeps the task, and the texts of requests, out of listings.
	Redact bool `json:"redact,omitempty"`
	// StateVersion is the version of the session's state that the agent's tools write. When a
	// run begins, a session of another version is migrated.
	StateVersion int `json:"state_version,omitempty"`
	// Stateless means that runs keep no session: nothing of a run is stored, and no run continues
	// another one. Its log stays in Temporal's history alone. Options that need a session are refused.
	Stateless bool `json:"stateless,omitempty"`
	// PersistState are the keys of the session's state that a run finds from earlier runs. What
	// tools set under other keys lasts for one run, and its forks and retries. Empty means every key.
	PersistState []string `json:"persist_state,omitempty"`
}

// Spec is what a run consists of: its definition with every default filled in, and its
// tools and model as they were when it began. It is recorded once, so a deploy that
// changes an agent does not change its running runs.
type Spec struct {
	V int `json:"v"`
	Definition
	// Flow means that a Go function decides what the run does next, in place of a model
	// (package flow).
	Flow    bool       `json:"flow,omitempty"`
	Toolset []ToolSpec `json:"toolset,omitempty"`
	// SourceInstructions is how many bytes at the end of Instructions are those of tool sources.
	SourceInstructions int `json:"source_instructions,omitempty"`
	// Skillset are the agent's skills, pinned by their digests.
	Skillset []Skill `json:"skillset,omitempty"`
	// InheritedReminders are those of the agents above. The log has them, with the Spec.
	InheritedReminders []InheritedReminder `json:"inherited_reminders,omitempty"`
	// InheritedCeilings are those of the agents above that exclude a tool of the provider. The log has
	// them, with the Spec.
	InheritedCeilings [][]string `json:"inherited_ceilings,omitempty"`
	// Workspace is what the parent says about a workspace of the run's own, for its model. The log has
	// it, with the Spec; nil means that the run works where its parent works.
	Workspace *OwnWorkspace `json:"workspace,omitempty"`
	// Policy is the part of the worker's policy that concerns the agent, as it was when
	// the run began.
	Policy Policy `json:"policy,omitempty"`
	// Price is the model's price; zero if it is unknown.
	Price Price `json:"price,omitzero"`
	// Prices are the prices of a flow's models, in the order of Fallbacks; empty for other agents.
	Prices []Price `json:"prices,omitempty"`
	// Unpriced are the fallbacks that had no known price when the run began.
	Unpriced []string `json:"unpriced,omitempty"`
	// Judges are the models of the judges in Verify and Hooks, with their prices.
	Judges []ModelPrice `json:"judges,omitempty"`
	// ModelQueue is the Temporal task queue of its model calls; empty means the run's
	// own.
	ModelQueue string `json:"model_queue,omitempty"`
	// Window is how many tokens a request and its reply may have together. MaxOutput is
	// how many a reply may have. Both are zero if unknown.
	Window    int `json:"window,omitempty"`
	MaxOutput int `json:"max_output,omitempty"`
}

// ToolSpec is a tool as the model sees it and as the runtime treats it.
type ToolSpec struct {
	// Name is what the model calls the tool by: 1 to 64 letters, digits, "_" or "-",
	// beginning with a letter.
	Name string `json:"name"`
	// Description tells the model what the tool does and when to use it.
	Description string `json:"description,omitempty"`
	// Input is a JSON Schema of the arguments.
	Input json.RawMessage `json:"input,omitempty"`
	// Timeout caps one attempt; zero means 10m.
	Timeout Duration `json:"timeout,omitempty"`
	// Attempts is how often a failing call is made, waiting 1s, 2s, 4s …; zero
	// means once. More than once is only for tools that are safe to run again.
	Attempts int `json:"attempts,omitempty"`
	// Local says that the tool is quick and has no side effects. It runs within the
	// workflow's own task and costs no action.
	Local bool `json:"local,omitempty"`
	// ReadOnly makes rules of class "reads" match the tool: it changes nothing.
	ReadOnly bool `json:"read_only,omitempty"`
	// Secrets names arguments that are hidden from people who approve a call.
	Secrets []string `json:"secrets,omitempty"`
	// Approval asks a person before each call; nil leaves that to rules.
	Approval *ToolApproval `json:"approval,omitempty"`
	// Executor says who carries the tool out; empty means a worker.
	Executor ToolExecutor `json:"executor,omitempty"`
	// Temporal is the activity, workflow or Nexus operation that the tool is; nil for a tool
	// with a function. Only a worker's own tools have it.
	Temporal *TemporalCall `json:"temporal,omitempty"`
}

// ToolExecutor says who runs a tool.
type ToolExecutor string

// The executors beside a worker, which is the zero value.
const (
	ExecutorRuntime  ToolExecutor = "runtime"  // the run itself: ask_user, await_resumption, finish
	ExecutorClient   ToolExecutor = "client"   // the client that answers the request
	ExecutorSubAgent ToolExecutor = "subagent" // a run of a sub-agent
)

// Names of the runtime's own tools.
const (
	AskUserTool         = "ask_user"         // asks a person
	AwaitResumptionTool = "await_resumption" // parks the run
	ShowFileTool        = "show_file"        // shows the model a file of its conversation again
	SaveArtifactTool    = "save_artifact"    // saves a text as an artifact; every worker has it
	TodoTool            = "todo"             // keeps a list of steps; every worker has it
	MemoryTool          = "memory"           // keeps files over sessions; every worker has it
	ToolSearchTool      = "tool_search"      // finds tools that are hidden from the model
	// Tools of flows alone.
	ApproveTool  = "approve"  // asks a person to approve something
	DoTool       = "do"       // runs a function of the flow's own
	GenerateTool = "generate" // calls a model once
	// TemporalTool calls an activity or a workflow of the namespace.
	TemporalTool = "temporal"
)

// FlowModel is what a flow has as its model: a function is in the model's place.
const FlowModel = "flow"

// LimitAction says what happens at a limit.
type LimitAction string

// The actions. The zero value means fail.
const (
	LimitActionFail LimitAction = "fail"
	LimitActionAsk  LimitAction = "ask"
	// LimitActionFinalize gives the model one last reply without tools, at a limit of turns or
	// time. Then the run fails with a handoff. At other limits it means fail.
	LimitActionFinalize LimitAction = "finalize"
)

// Completion says what ends a run.
type Completion string

// The ways to complete. The zero value means natural.
const (
	CompletionNatural Completion = "natural" // a reply without tool calls
	CompletionTool    Completion = "tool"    // a call of the tool [FinishTool]
)

// FinishTool is the tool that ends a run under completion "tool".
const FinishTool = "finish"

// ReturnUnableTool is the tool with which a model says that it can't do its task. An agent has it
// if its recovery names [FailureUnable].
const ReturnUnableTool = "return_unable"

// OneOf is one name, or several of which any one is enough. In JSON it is a string or a
// list of strings.
type OneOf []string

// MarshalJSON writes one name as a string.
func (o OneOf) MarshalJSON() ([]byte, error) {
	if len(o) == 1 {
		return json.Marshal(o[0])
	}
	return json.Marshal([]string(o))
}

// UnmarshalJSON reads a string or a list of strings.
func (o *OneOf) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*o = OneOf{one}
		return nil
	}
	var many []string
	if err := json.Unmarshal(b, &many); err != nil {
		return fmt.Errorf("%s is neither a name nor a list of names", b)
	}
	*o = many
	return nil
}

// String joins the names with " or ".
func (o OneOf) String() string { return strings.Join(o, " or ") }

// WithDefaults returns the definition with every default filled in. Values that are set
// stay.
func (d Definition) WithDefaults() Definition {
	if d.Profile == "" {
		d.Profile = ProfileToolUsing
	}
	p := profiles[d.Profile]
	d.Limits = d.Limits.WithDefaults(p.turns)
	d.Nudges = or(d.Nudges, p.nudges)
	d.Repairs = or(d.Repairs, p.repairs)
	d.ParallelTools = or(d.ParallelTools, 8)
	d.ModelAttempts = or(d.ModelAttempts, 4)
	d.ModelTimeout = or(d.ModelTimeout, Duration(10*time.Minute))
	d.ModelSilence = or(d.ModelSilence, Duration(time.Minute))
	d.Compaction = d.Compaction.WithDefaults()
	d.Daemon, d.ReasoningPolicy = d.Daemon.WithDefaults(), d.ReasoningPolicy.WithDefaults()
	d.ToolNarrowing, d.Recovery, d.SkillMatch = d.ToolNarrowing.WithDefaults(), d.Recovery.WithDefaults(), d.SkillMatch.WithDefaults()
	d.Verify, d.Hooks = d.Verify.WithDefaults(), d.Hooks.WithDefaults()
	d.suspensionDefaults()
	if d.Completion == "" {
		d.Completion = CompletionNatural
	}
	d.offerAwaitResumption()
	// As a rule, because the loop knows only rules. Clip, so that the append can't write
	// into the caller's array.
	if d.Default == RulingAsk || d.Default == RulingDeny {
		d.Rules = append(slices.Clip(d.Rules), Rule{Do: d.Default, Otherwise: true})
		d.Default = ""
	}
	return d
}

func or[T comparable](v, fallback T) T {
	var zero T
	if v == zero {
		return fallback
	}
	return v
}

// Tool returns the tool that the model calls by this name, and whether the spec has it.
func (s *Spec) Tool(name string) (ToolSpec, bool) {
	for _, t := range s.Toolset {
		if t.Name == name {
			return t, true
		}
	}
	return ToolSpec{}, false
}
