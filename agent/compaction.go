package agent

// Strategy is how a conversation is made to fit into its model's window
// (catalogue HA-80).
type Strategy string

// The strategies. The zero value means hybrid.
const (
	CompactHybrid Strategy = "hybrid"           // sum up what is older, and cut what is still too long
	CompactAll    Strategy = "summarize_all"    // sum up everything
	CompactMiddle Strategy = "summarize_middle" // keep the beginning too
	CompactCut    Strategy = "truncate"         // leave out what is older
	CompactNone   Strategy = "none"             // nothing: the provider refuses what is too long
)

// Compacting says when and how a run's conversation is compacted for its model.
// The zero value is what most agents want. The transcript is never changed.
type Compacting struct {
	Strategy Strategy `json:"strategy,omitempty"`
	// At is the share of the window that a request may fill; zero means 0.8.
	At float64 `json:"at,omitempty"`
	// KeepFirst and KeepLast are how many messages stay as they were. Zero means 0
	// and 10; a negative KeepLast means none. Calls stay with their results.
	KeepFirst int `json:"keep_first,omitempty"`
	KeepLast  int `json:"keep_last,omitempty"`
	// Instructions are added to what the model is asked for a summary with.
	Instructions string `json:"instructions,omitempty"`
}

// Check refuses what can't be meant, with [InvalidInput].
func (c Compacting) Check() error {
	switch c.Strategy {
	case "", CompactHybrid, CompactAll, CompactMiddle, CompactCut, CompactNone:
	default:
		return Errorf(InvalidInput, "compaction.strategy must be hybrid, summarize_all, summarize_middle, truncate or none, not %q", c.Strategy).At("compaction.strategy")
	}
	if c.At < 0 || c.At > 1 {
		return Errorf(InvalidInput, "compaction.at must be between 0 and 1, not %g", c.At).At("compaction.at")
	}
	if c.KeepFirst < 0 {
		return Errorf(InvalidInput, "compaction.keep_first: %d is not a positive number", c.KeepFirst).At("compaction.keep_first")
	}
	return nil
}

// WithDefaults returns c with every default filled in.
func (c Compacting) WithDefaults() Compacting {
	c.Strategy = or(c.Strategy, CompactHybrid)
	c.At = or(c.At, 0.8)
	c.KeepLast = or(c.KeepLast, 10)
	switch c.Strategy {
	case CompactAll:
		c.KeepFirst, c.KeepLast = 0, -1
	case CompactMiddle:
		c.KeepFirst = or(c.KeepFirst, 1)
	}
	return c
}

// Compaction says what a model no longer sees as it was (catalogue HA-82). The
// summary, where there is one, is the event's message.
type Compaction struct {
	Strategy Strategy `json:"strategy"`
	// Reason is window, overflow (the provider refused the request), carry, resume or
	// idle.
	Reason string `json:"reason"`
	// KeepFirst messages at the beginning and those from the event KeepFrom on stay
	// as they were; KeepFrom is zero where none of the newest do.
	KeepFirst int   `json:"keep_first,omitempty"`
	KeepFrom  int64 `json:"keep_from,omitempty"`
	// Before and After are about how many tokens a request has.
	Before int64 `json:"tokens_before,omitempty"`
	After  int64 `json:"tokens_after,omitempty"`
	// Instructed tells that the agent's own instructions were added to the prompt.
	Instructed bool `json:"instructed,omitempty"`
}

// Reasons of a compaction.
const (
	CompactedForWindow   = "window"   // the request would fill more than its share
	CompactedForOverflow = "overflow" // the provider refused the request as too long
	CompactedForCarry    = "carry"    // the run was started so
	CompactedForResume   = "resume"   // the run was resumed so
	CompactedForIdle     = "idle"     // the run is a daemon that does so before it idles
)
