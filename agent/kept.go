package agent

// Kept is what a run at rest keeps until it goes on.
type Kept struct {
	// Messages are those that the model has not received yet, in the order in which they came.
	Messages []KeptMessage `json:"messages,omitempty"`
	// Calls are the calls of the turn that begin when it goes on.
	Calls []KeptCall `json:"calls,omitempty"`
}

// KeptMessage is the beginning of a message, or the name of its file.
type KeptMessage struct {
	By   string `json:"by,omitempty"`
	Text string `json:"text"`
}

// KeptCall is a call that begins when the run goes on. Step is the path of a flow's step.
type KeptCall struct {
	Call string `json:"call"`
	Tool string `json:"tool"`
	Step string `json:"step,omitempty"`
	// Decided means that somebody has approved or answered it.
	Decided bool `json:"decided,omitempty"`
	// Asked means that the call ran as far as a question of its own, so it may have had a part of its
	// effect. Otherwise it has not begun.
	Asked bool `json:"asked,omitempty"`
}
