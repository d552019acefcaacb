package agent

// Preview is what a run would be if it were started now: worker.DryRun makes it. No run is
// started and no model is called for it.
type Preview struct {
	V     int    `json:"v"`
	Type  string `json:"type"` // "preview"
	Agent string `json:"agent"`
	// Spec is the agent's definition with every default filled in, as a run would record it,
	// with all tools that the model would be offered.
	Spec Spec `json:"spec"`
	// Tools says what happens to calls of each tool of the Spec, in its order.
	Tools []ToolPreview `json:"tools,omitempty"`
	// Skills are those with which the first request begins: a user has named them, or they match
	// the task. They have no instructions here, since Instructions has them.
	Skills []SkillUpdate `json:"skills,omitempty"`
	// Instructions are those of the first request: the Spec's, with what the runtime adds.
	Instructions string `json:"instructions,omitempty"`
	// Messages are those of the first request.
	Messages []Message `json:"messages,omitempty"`
	// Request is the size of the first request; its zero value means that the run would not
	// begin with one, because it would be parked, or is a flow. Checks of hooks.before_run are
	// taken to accept the task.
	Request RequestSize `json:"request,omitzero"`
}

// ToolPreview says what happens to the calls of a tool.
type ToolPreview struct {
	Tool string `json:"tool"`
	// Source is the MCP server that has the tool; empty for other tools.
	Source string `json:"source,omitempty"`
	// Hidden means that the first request leaves the tool out, until the model finds it or the
	// active skills end.
	Hidden bool `json:"hidden,omitempty"`
	// Executor is as in [ToolSpec].
	Executor ToolExecutor `json:"executor,omitempty"`
	ReadOnly bool         `json:"read_only,omitempty"`
	// Ruling is what the rules decide about a call, whatever its arguments.
	Ruling Ruling `json:"ruling"`
	// Maybe are stricter rulings that some calls get: a rule looks at their arguments, or
	// matches only after some calls.
	Maybe []Ruling `json:"maybe,omitempty"`
	// Approvers are the only people who may approve a call.
	Approvers []string `json:"approvers,omitempty"`
	// Reason is that of the rule that counts.
	Reason string `json:"reason,omitempty"`
}

// RequestSize is how large a request is.
type RequestSize struct {
	// Bytes counts instructions, tools and messages.
	Bytes int `json:"bytes"`
	// Tokens is an estimate. Window is how many tokens the model takes with its reply; zero if
	// that is not known.
	Tokens int64 `json:"tokens"`
	Window int   `json:"window,omitempty"`
}
