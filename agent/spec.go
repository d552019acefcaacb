package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Definition is an agent as its author writes it, in Go or in an agents file.
// Name and Model are required; every other field has a default.
type Definition struct {
	Name string `json:"name"`
	// Description says what the agent is for, to people and to other agents.
	Description string `json:"description,omitempty"`
	// Model is the full name of a model that the worker has, "anthropic/claude-sonnet-5".
	Model string `json:"model"`
	// Fallbacks are full names of models that are asked in its place, in order,
	// where it fails in a way in which another may not.
	Fallbacks    []string `json:"fallbacks,omitempty"`
	Instructions string   `json:"instructions,omitempty"`
	// Tools lists names of tools, and "mcp:SERVER" for all tools of a server. The
	// names [AskUserTool] and [AwaitResumptionTool] are tools of the runtime's own.
	Tools []string `json:"tools,omitempty"`
	// ClientTools are tools that the run's client carries out: a call of one is a
	// request that is answered with its result.
	ClientTools []ToolSpec `json:"client_tools,omitempty"`
	// Rules decide which calls are made, which are asked for first, and which are
	// refused.
	Rules []Rule `json:"rules,omitempty"`
	// Default is what becomes of calls that no rule matches: allow (the default), ask or
	// deny. The runtime's own tools, such as ask_user and finish, need no rule.
	Default Ruling `json:"default,omitempty"`
	// AnswerTimeouts is how long questions, limits and client tools wait for an answer.
	AnswerTimeouts AnswerTimeouts `json:"answer_timeouts,omitzero"`
	// Agents are the agents that this one may give work to.
	Agents []SubAgent `json:"agents,omitempty"`
	// Lifecycle gives the model tools to list, pause, resume, stop and wait for
	// the agents that it gave work to.
	Lifecycle bool `json:"lifecycle,omitempty"`
	// Ceiling bounds the tools of this agent and of all below it, by names and
	// patterns; empty means no bound but the definitions' own.
	Ceiling []string `json:"ceiling,omitempty"`
	// Profile sets defaults for Limits.OwnTurns, Nudges and Repairs.
	Profile Profile `json:"profile,omitempty"`
	Limits  Limits  `json:"limits,omitzero"`
	// OnLimit and OnLoop say whether a limit that is reached, or a call that is
	// repeated without end, fails the run (the default) or asks what to do.
	OnLimit LimitAction `json:"on_limit,omitempty"`
	OnLoop  LimitAction `json:"on_loop,omitempty"`
	// Completion says what ends a run: a final text (natural, the default), or
	// the tool finish (tool).
	Completion Completion `json:"completion,omitempty"`
	// Nudges is how many replies in a row may be text only under completion
	// "tool" before the run fails with [CodeStuck]; zero means the profile's.
	Nudges int `json:"nudges,omitempty"`
	// Nudge is what such a reply is answered with; empty means a text of ours.
	Nudge string `json:"nudge,omitempty"`
	// Require lists tools that must have succeeded before a run may complete;
	// of the names in one entry one is enough.
	Require []OneOf `json:"require,omitempty"`
	// Output is a JSON Schema for the final answer; empty means free text. In Go,
	// model.OutputOf derives it from a type.
	Output json.RawMessage `json:"output,omitempty"`
	// Repairs is how often the model may mend an output that does not fit; zero
	// means the profile's, which is once unless it says otherwise.
	Repairs int `json:"repairs,omitempty"`
	// ParallelTools is how many calls of one turn run at once; zero means 8.
	ParallelTools int `json:"parallel_tools,omitempty"`
	// ModelTimeout caps one attempt at a model call; zero means 10m. A stream
	// that stays silent is given up earlier, see [Definition.ModelSilence].
	ModelTimeout Duration `json:"model_timeout,omitempty"`
	// ModelSilence caps the wait for the next piece of a model's reply; zero means 60s.
	ModelSilence Duration `json:"model_silence,omitempty"`
	// ModelAttempts is how often a model call is tried, waiting 2s, 4s, 8s …
	// 30s or as long as the provider asks; zero means 4.
	ModelAttempts int `json:"model_attempts,omitempty"`
	// MaxOutputTokens caps one reply; zero means the model's own cap.
	MaxOutputTokens int `json:"max_output_tokens,omitempty"`
	// Temperature is given to the model where it is set.
	Temperature *float64 `json:"temperature,omitempty"`
	// Reasoning is how much the model, and its fallbacks, think before they answer;
	// empty means each provider's default.
	Reasoning Reasoning `json:"reasoning,omitempty"`
	// ResumeWithin is how long after it was suspended a run can be resumed or answered; then
	// both are refused with [CodeExpired]. Zero means forever.
	ResumeWithin Duration `json:"resume_within,omitempty"`
	// Compaction says how a long conversation is made to fit into the model's window.
	Compaction CompactionPolicy `json:"compaction,omitzero"`
	// Daemon makes the agent idle instead of ending; nil means that it ends.
	Daemon *Daemon `json:"daemon,omitempty"`
	// Redact keeps what a run is asked, and what it asks, out of listings: they show
	// neither task nor text (docs/wire.md §8).
	Redact bool `json:"redact,omitempty"`
	// StateVersion is the version of the session's state that the agent's tools
	// write. A session of another version is migrated when a run begins.
	StateVersion int `json:"state_version,omitempty"`
}

// Spec is what a run is made of: its definition with every default filled in,
// its tools and its model as they were when it began. It is recorded once a
// run, so that a deploy which changes an agent does not change its runs.
type Spec struct {
	V int `json:"v"`
	Definition
	Toolset []ToolSpec `json:"toolset,omitempty"`
	// Policy is what of the worker's is about the agent, as it was when the run began.
	Policy Policy `json:"policy,omitempty"`
	// Price is the model's, zero if it is unknown.
	Price Price `json:"price,omitzero"`
	// Unpriced are the fallbacks whose price was not known when the run began.
	Unpriced []string `json:"unpriced,omitempty"`
	// ModelQueue is the Temporal task queue on which its model calls wait; empty means
	// the run's own.
	ModelQueue string `json:"model_queue,omitempty"`
	// Window is how many tokens a request and its reply may have together, and
	// MaxOutput how many of them a reply may; zero if it is unknown.
	Window    int `json:"window,omitempty"`
	MaxOutput int `json:"max_output,omitempty"`
}

// ToolSpec is a tool as the model sees it and as the runtime treats it.
type ToolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Input       json.RawMessage `json:"input,omitempty"` // a JSON Schema
	// Timeout caps one attempt; zero means 10m.
	Timeout Duration `json:"timeout,omitempty"`
	// Attempts is how often a failing call is made, waiting 1s, 2s, 4s …; zero
	// means once. More than once is only for tools that are safe to run again.
	Attempts int `json:"attempts,omitempty"`
	// Local tools are quick and have no side effects: they run within the
	// workflow's own task and cost no action.
	Local bool `json:"local,omitempty"`
	// ReadOnly tools change nothing.
	ReadOnly bool `json:"read_only,omitempty"`
	// Secrets names arguments that nobody is shown who is asked about a call.
	Secrets []string `json:"secrets,omitempty"`
	// Approval has a person asked before each call; nil means that only rules do.
	Approval *ToolApproval `json:"approval,omitempty"`
	// Executor says who carries the tool out; empty means a worker.
	Executor ToolExecutor `json:"executor,omitempty"`
}

// ToolExecutor is who carries a tool out.
type ToolExecutor string

// Who can carry a tool out, beside workers.
const (
	ExecutorRuntime  ToolExecutor = "runtime"  // the run itself: ask_user, await_resumption, finish
	ExecutorClient   ToolExecutor = "client"   // whoever answers the request
	ExecutorSubAgent ToolExecutor = "subagent" // a run of another agent
)

// Price is what a million tokens cost, and a thousand searches. Zero prices are unknown or
// free.
type Price struct {
	Input      USD `json:"input,omitempty"`
	Output     USD `json:"output,omitempty"`
	CacheRead  USD `json:"cache_read,omitempty"`
	CacheWrite USD `json:"cache_write,omitempty"`
	// Search is for a thousand searches of the web that the provider makes itself.
	Search USD `json:"search,omitempty"`
}

// Names of the runtime's own tools.
const (
	AskUserTool         = "ask_user"         // asks a person
	AwaitResumptionTool = "await_resumption" // parks the run
)

// LimitAction says what reaching a bound means.
type LimitAction string

// What reaching a bound can mean.
const (
	LimitActionFail LimitAction = "fail"
	LimitActionAsk  LimitAction = "ask"
)

// Completion says what ends a run.
type Completion string

// The ways to complete.
const (
	CompletionNatural Completion = "natural" // a reply without tool calls
	CompletionTool    Completion = "tool"    // a call of the tool [FinishTool]
)

// FinishTool is the tool that ends a run under completion "tool".
const FinishTool = "finish"

// Profile names a set of defaults.
type Profile string

// The profiles: a loop that uses tools, one that looks things up, one that
// checks the work of others, and one that answers at once.
const (
	ProfileToolUsing  Profile = "tool_using"
	ProfileResearcher Profile = "researcher"
	ProfileVerifier   Profile = "verifier"
	ProfileCompleter  Profile = "completer"
)

type defaults struct{ turns, nudges, repairs int }

var profiles = map[Profile]defaults{
	ProfileToolUsing:  {50, 8, 1},
	ProfileResearcher: {30, 4, 1},
	ProfileVerifier:   {5, 0, 3},
	ProfileCompleter:  {1, 0, 3},
}

// OneOf is a name, or several of which one is enough. On the wire it is a
// string or a list of strings.
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

// WithDefaults returns the definition with every default filled in; what its
// author set stays.
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
	d.Daemon = d.Daemon.WithDefaults()
	if d.Completion == "" {
		d.Completion = CompletionNatural
	}
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

// Tool finds a tool of the spec by the name that the model calls it by.
func (s *Spec) Tool(name string) (ToolSpec, bool) {
	for _, t := range s.Toolset {
		if t.Name == name {
			return t, true
		}
	}
	return ToolSpec{}, false
}

// WithoutTexts returns the spec without what only the model and the steps read:
// instructions, descriptions and schemas. It is what a run's state carries.
func (s Spec) WithoutTexts() Spec {
	s.Instructions, s.Description, s.ClientTools = "", "", nil
	s.Rules = slices.Clone(s.Rules)
	for i := range s.Rules {
		s.Rules[i].Arguments = nil
	}
	tools := make([]ToolSpec, len(s.Toolset))
	for i, t := range s.Toolset {
		t.Description, t.Input = "", nil
		tools[i] = t
	}
	s.Toolset = tools
	return s
}
