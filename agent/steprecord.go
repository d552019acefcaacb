package agent

import "time"

// StepRecord is what a session's log says about one step of a flow.
type StepRecord struct {
	// Path is the step's path, such as "file.3/reviewer".
	Path string `json:"path"`
	// Tool is the tool that does the step, such as "subagent__reviewer", "ask_user" or "do".
	Tool string `json:"tool"`
	// Call is the id of the call in its run. Run is that run: another one than the last if
	// the last run has forked it, and has taken over the result.
	Call string `json:"call"`
	Run  string `json:"run"`
	// Status is how the step ended; empty while it is open.
	Status CallStatus `json:"status,omitempty"`
	// Dropped means that the flow stopped waiting for the step before it ended.
	Dropped bool `json:"dropped,omitempty"`
	// Asked is when the function asked for the step. Started is when it began, and Ended
	// when its result came; both are zero before that.
	Asked   time.Time `json:"asked"`
	Started time.Time `json:"started,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
	// Request is the id of the last request that the step has opened; empty for none. Answered means
	// that this request is not open any more.
	Request  string `json:"request,omitempty"`
	Answered bool   `json:"answered,omitempty"`
	// Answers counts the answers to questions of the step's own code, with which it has begun again.
	Answers int `json:"answers,omitempty"`
	// Session and Agent name the run below that does the step. Tokens and Cost are what it
	// has used with all runs below it, once it has ended.
	Session string `json:"session,omitempty"`
	Agent   string `json:"agent,omitempty"`
	Tokens  int64  `json:"tokens,omitempty"`
	Cost    USD    `json:"cost_usd,omitempty"`
}
