package agent

// LifecycleCall says who is to be suspended, resumed or stopped by a model's call, and why. An
// audit has all of it but Reason and Conditions.
type LifecycleCall struct {
	// Initiator is parent if the call is about the caller's sub-agents, and self if it is
	// await_resumption.
	Initiator Initiator `json:"initiator"`
	// By is who calls: "agent:" and the session.
	By string `json:"by"`
	// Children are the first 8 sub-agents that the call names. It is empty if the call names
	// none that the caller has.
	Children []string `json:"children,omitempty"`
	// Reason is the beginning of the reason, at most 201 characters.
	Reason string `json:"reason,omitempty"`
	// Conditions are the first 8 that end the suspension, as "time" or "topic:NAME".
	Conditions []string `json:"conditions,omitempty"`
}
