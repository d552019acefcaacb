package eval

import (
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite/eval/grade"
)

// State says what became of a trial. The set is closed.
type State string

// The states.
const (
	StatePassed State = "passed"
	StateFailed State = "failed"
	// StateLeftOut means that the budget or a cancellation ended the trial, or that it never
	// began. It counts neither way.
	StateLeftOut State = "left_out"
	// StateError means that the trial could not be made or graded. It counts neither way.
	StateError State = "error"
)

// Counts is the short form of a trial: what the budget and the progress need.
type Counts struct {
	Case  string    `json:"case"`
	N     int       `json:"trial"`
	State State     `json:"state"`
	Cost  agent.USD `json:"cost_usd,omitempty"`
}

// Trial is one try of a case, as it is recorded. It is bounded: an answer is cut.
type Trial struct {
	Counts
	// Why says why it failed or was left out; empty if it passed.
	Why string `json:"why,omitempty"`
	// Session and Run are those of the run; empty if none began.
	Session string `json:"session,omitempty"`
	Run     string `json:"run,omitempty"`
	// Model is what the run began with, and Build that of the worker which had it at its end;
	// empty if no worker answered.
	Model string `json:"model,omitempty"`
	Build string `json:"build,omitempty"`

	Status agent.Status `json:"status,omitempty"`
	Reason string       `json:"reason,omitempty"`
	// Text is the beginning of the answer.
	Text     string          `json:"text,omitempty"`
	Verdicts []grade.Verdict `json:"verdicts,omitempty"`
	// Tools are the names of the called tools in their order, the first [MaxTools] of them.
	Tools []string `json:"tools,omitempty"`
	// Answers are what the person decided.
	Answers []Answer `json:"answers,omitempty"`
	// RunCost, Turns and Tokens are those of the run and of all runs below it. Cost is RunCost
	// with the judges and the person.
	RunCost  agent.USD      `json:"run_cost_usd,omitempty"`
	Turns    int            `json:"turns,omitempty"`
	Tokens   int64          `json:"tokens,omitempty"`
	Duration agent.Duration `json:"duration,omitempty"`
	Error    *agent.Error   `json:"error,omitempty"`
}

// Bounds of what a trial records.
const (
	MaxText  = 2_000 // bytes of the answer
	MaxTools = 50
)

// Answer is what the person decided about a request.
type Answer struct {
	Session string `json:"session"`
	Request string `json:"request"`
	// Decision is approve, reject, answer, stop, ignore or fail; none if no rule matched.
	Decision string `json:"decision"`
	// Rule is the number of the rule, from 1; zero for the model and for none.
	Rule int `json:"rule,omitempty"`
	// Text is the answer or the reason, cut.
	Text string `json:"text,omitempty"`
	// Refused says why the run refused the answer.
	Refused string    `json:"refused,omitempty"`
	Cost    agent.USD `json:"cost_usd,omitempty"`
}

// Stop says why an evaluation stopped before its end; empty if it did not.
type Stop string

// The reasons.
const (
	StopCost      Stop = "budget_cost"
	StopTime      Stop = "budget_time"
	StopCancelled Stop = "cancelled"
)

// Info is what is known of an evaluation without its trials.
type Info struct {
	ID    string `json:"id"`
	Suite string `json:"suite"`
	// Label is the user's name for what is evaluated: a build, a model, a prompt.
	Label string `json:"label,omitempty"`
	// Agents is the absolute path of the agents file, and Dir the directory of the suite.
	// They are for people: anybody who may write to the server can change them, so nothing
	// loads them. AgentsDigest is the SHA-256 of the agents file.
	Agents       string `json:"agents_file,omitempty"`
	AgentsDigest string `json:"agents_digest,omitempty"`
	Dir          string `json:"dir,omitempty"`
	// Queue is the task queue of the runs, and Evaluator that of the evaluation.
	Queue     string `json:"task_queue"`
	Evaluator string `json:"evaluator"`
	// Model is the model that replaces the agents' own; empty if none does.
	Model string `json:"model,omitempty"`
	// Local says that the command which evaluates runs the agents, too.
	Local bool `json:"local,omitempty"`
	// Total is how many trials the suite has.
	Total int `json:"total"`
}

// Progress is where an evaluation stands.
type Progress struct {
	Done []Counts `json:"done"`
	// Running and Left count the trials that have not ended, and have not begun.
	Running int       `json:"running"`
	Left    int       `json:"left"`
	Spent   agent.USD `json:"spent_usd"`
	Stopped Stop      `json:"stopped,omitempty"`
	Ended   bool      `json:"ended"`
}

// Evaluation is an evaluation with all that is known of it.
type Evaluation struct {
	Info
	Definition *Suite    `json:"definition"`
	Progress   Progress  `json:"progress"`
	Started    time.Time `json:"started"`
	Finished   time.Time `json:"finished,omitzero"`
	// Trials are those that have ended or were left out, in the order of the suite.
	Trials []Trial `json:"trials"`
}
