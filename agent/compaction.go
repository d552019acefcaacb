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
)

// CompactionPolicy says when and how a run's conversation is compacted for its model. The
// defaults suit most agents. The transcript never changes.
type CompactionPolicy struct {
	// Strategy says how older messages are replaced; empty means hybrid.
	Strategy CompactionStrategy `json:"strategy,omitempty"`
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
	case "", CompactionHybrid, CompactionSummarizeAll, CompactionSummarizeMiddle, CompactionTruncate, CompactionNone:
	default:
		return Errorf(CodeInvalidInput, "compaction.strategy must be hybrid, summarize_all, summarize_middle, truncate or none, not %q", c.Strategy).WithPath("compaction.strategy")
	}
	if c.Threshold < 0 || c.Threshold > 1 {
		return Errorf(CodeInvalidInput, "compaction.threshold must be between 0 and 1, not %g", c.Threshold).WithPath("compaction.threshold")
	}
	if c.KeepFirst < 0 {
		return Errorf(CodeInvalidInput, "compaction.keep_first: %d is not a positive number", c.KeepFirst).WithPath("compaction.keep_first")
	}
	return nil
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
