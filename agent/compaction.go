package agent

// CompactionStrategy is how a conversation is made to fit its model's window.
type CompactionStrategy string

// The strategies. The zero value means hybrid.
const (
	CompactionHybrid          CompactionStrategy = "hybrid"           // sum up what is older, and cut what is still too long
	CompactionSummarizeAll    CompactionStrategy = "summarize_all"    // sum up everything
	CompactionSummarizeMiddle CompactionStrategy = "summarize_middle" // keep the beginning too
	CompactionTruncate        CompactionStrategy = "truncate"         // leave out what is older
	CompactionNone            CompactionStrategy = "none"             // nothing: the provider refuses what is too long
	CompactionCustom          CompactionStrategy = "custom"           // a function of the worker writes the summary
)

// CompactionPolicy says when and how a run's conversation is compacted for its model. The
// defaults suit most agents. The transcript never changes.
type CompactionPolicy struct {
	// Strategy says how older messages are replaced; empty means hybrid.
	Strategy CompactionStrategy `json:"strategy,omitempty"`
	// Tool is the worker's tool that writes the summary under the strategy custom. It gets a
	// CompactionInput, and returns a CompactionSummary. It needs no approval and only reads. If it
	// fails, the strategy is hybrid for that time, and the event says why.
	Tool string `json:"tool,omitempty"`
	// Threshold is the share of the window that a request may fill; zero means 0.8.
	Threshold float64 `json:"threshold,omitempty"`
	// KeepFirst is how many messages at the beginning stay as they are; zero means none, or
	// one under summarize_middle.
	KeepFirst int `json:"keep_first,omitempty"`
	// KeepLast is how many of the newest messages stay as they are; zero means 10. A negative
	// number keeps none. Calls stay with their results.
	KeepLast int `json:"keep_last,omitempty"`
	// Instructions are added to the prompt that asks the model for a summary.
	Instructions string `json:"instructions,omitempty"`
}

// Check refuses invalid values, with [CodeInvalidInput].
func (c CompactionPolicy) Check() error {
	switch c.Strategy {
	case "", CompactionHybrid, CompactionSummarizeAll, CompactionSummarizeMiddle, CompactionTruncate, CompactionNone, CompactionCustom:
	default:
		return Errorf(CodeInvalidInput, "compaction.strategy must be hybrid, summarize_all, summarize_middle, truncate, none or custom, not %q", c.Strategy).WithPath("compaction.strategy")
	}
	switch {
	case c.Strategy == CompactionCustom && c.Tool == "":
		return Errorf(CodeInvalidInput, "compaction.tool is missing: name the tool that writes the summary under the strategy custom").WithPath("compaction.tool")
	case c.Strategy != CompactionCustom && c.Tool != "":
		return Errorf(CodeInvalidInput, "compaction.tool belongs to the strategy custom; set compaction.strategy to it, or leave the tool out").WithPath("compaction.tool")
	}
	if c.Threshold < 0 || c.Threshold > 1 {
		return Errorf(CodeInvalidInput, "compaction.threshold must be between 0 and 1, not %g", c.Threshold).WithPath("compaction.threshold")
	}
	if c.KeepFirst < 0 {
		return Errorf(CodeInvalidInput, "compaction.keep_first: %d is not a positive number", c.KeepFirst).WithPath("compaction.keep_first")
	}
	return nil
}

// CompactionInput is what the tool of a custom compaction gets.
type CompactionInput struct {
	// Archived are the parts of the messages that the summary replaces, in order; of more than 1 MiB
	// the newest.
	Archived []ArchivedPart `json:"archived"`
	// Reminders are the texts of the run's reminders, which each request has anyway.
	Reminders []string         `json:"reminders"`
	Policy    CompactionPolicy `json:"policy"`
}

// ArchivedPart is a part of a message: a text, a call, a call's result, or a file.
type ArchivedPart struct {
	Role Role `json:"role"`
	Note Note `json:"note,omitempty"`
	// Text is the text, or the result of the call.
	Text string `json:"text,omitempty"`
	// Call is the id of a call, Tool its tool, and Arguments are its arguments as JSON. A result has
	// no arguments, but a status.
	Call      string     `json:"call,omitempty"`
	Tool      string     `json:"tool,omitempty"`
	Arguments string     `json:"arguments,omitempty"`
	Status    CallStatus `json:"status,omitempty"`
	// File is the name of a file. The store has its bytes.
	File string `json:"file,omitempty"`
}

// CompactionSummary is what the tool of a custom compaction returns. The summary is cut at a fifth of
// the window.
type CompactionSummary struct {
	Summary string `json:"summary"`
}

// WithDefaults returns c with every default filled in.
func (c CompactionPolicy) WithDefaults() CompactionPolicy {
	c.Strategy = or(c.Strategy, CompactionHybrid)
	c.Threshold = or(c.Threshold, 0.8)
	c.KeepLast = or(c.KeepLast, 10)
	switch c.Strategy {
	case CompactionSummarizeAll:
		c.KeepFirst, c.KeepLast = 0, -1
	case CompactionSummarizeMiddle:
		c.KeepFirst = or(c.KeepFirst, 1)
	}
	return c
}

// Compaction is what an event of type compacted says: which messages the model no longer
// sees as they were. If there is a summary, it is the event's message.
type Compaction struct {
	Strategy CompactionStrategy `json:"strategy"`
	// Fallback says why the strategy is not custom, as the agent's is; empty otherwise.
	Fallback string `json:"fallback,omitempty"`
	// Reason is one of the Compacted constants.
	Reason string `json:"reason"`
	// KeepFirst messages at the beginning stay as they were, and so do those from the
	// event KeepFrom on. KeepFrom is zero if none of the newest stay.
	KeepFirst int   `json:"keep_first,omitempty"`
	KeepFrom  int64 `json:"keep_from,omitempty"`
	// Before and After are the approximate sizes of a request, in tokens.
	Before int64 `json:"tokens_before,omitempty"`
	After  int64 `json:"tokens_after,omitempty"`
	// Instructed means that the agent's own instructions were added to the prompt.
	Instructed bool `json:"instructed,omitempty"`
}

// The reasons of a compaction.
const (
	CompactedForWindow   = "window"   // the request would exceed its share of the window
	CompactedForOverflow = "overflow" // the provider refused the request as too long
	CompactedForCarry    = "carry"    // the run was started with carry: compact
	CompactedForResume   = "resume"   // the run was resumed from a summary
	CompactedForRecovery = "recovery" // the agent's recovery names compact for a failure
	CompactedForIdle     = "idle"     // the run is a daemon that compacts before it idles
)
