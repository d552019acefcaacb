package loop

import (
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// SuspensionHooks is the part that knows which hook around a suspension or a resume works, and what
// waits for hooks. Such a hook is an activity of its own, beside the turn and its calls: a run is
// suspended and resumed in any phase of them. One hook works at a time.
type SuspensionHooks struct {
	// Current is the hook that works; nil if none does.
	Current *CurrentCheck `json:"current,omitempty"`
	// Dropped is the call of the hook that was cancelled last, until it returns; empty for none.
	Dropped string `json:"dropped,omitempty"`
	// Resume is the resume that waits for its hooks, or for newer instructions; nil if none does.
	Resume *PendingResume `json:"resume,omitempty"`
	// Resumed is what the hooks after a resume are told; nil if all were.
	Resumed *ToldResume `json:"resumed,omitempty"`
	// Denied is the last suspension that a hook denied; nil once the run was suspended since.
	Denied *agent.SuspensionDenied `json:"denied,omitempty"`
}

// PendingResume is a resume that waits for its hooks, or for newer instructions. It is carried out when all
// of them allow it and the instructions are there.
type PendingResume struct {
	Command agent.ResumeCommand `json:"command"`
	ID      string              `json:"id,omitempty"`
	Digest  string              `json:"digest,omitempty"`
	// Signal means that nobody waits for the answer.
	Signal bool `json:"signal,omitempty"`
	// Token is the token that the resume uses when it is carried out.
	Token UsedToken `json:"token,omitzero"`
	// Size is how much space the resume takes, in bytes of JSON.
	Size int `json:"size,omitempty"`
	// Next is the index of the hook that is asked next.
	Next int `json:"next,omitempty"`
	// Fetching means that the agent's newest instructions were asked for, and have not come yet.
	Fetching bool `json:"fetching,omitempty"`
}

// ToldResume is what the hooks after a resume are told.
type ToldResume struct {
	Suspension agent.HookSuspension `json:"suspension"`
	Resumed    agent.Resumed        `json:"resumed"`
	Next       int                  `json:"next,omitempty"`
}

func (h SuspensionHooks) clone() SuspensionHooks {
	h.Current, h.Resume, h.Resumed = copied(h.Current), copied(h.Resume), copied(h.Resumed)
	return h
}

// has reports whether a call is that of the hook that works.
func (h SuspensionHooks) has(call string) bool { return h.Current != nil && h.Current.Call == call }

// busy reports whether a hook works, or some are to be told of a resume. The run begins nothing and
// does not rest until they are done.
func (h SuspensionHooks) busy() bool { return h.Current != nil || h.Resumed != nil }

// asked reports whether a hook works, or a resume waits for one.
func (h SuspensionHooks) asked() bool { return h.Current != nil || h.Resume != nil }

func (h *SuspensionHooks) begin(c CurrentCheck) { h.Current = &c }

// end ends the hook that works and returns it.
func (h *SuspensionHooks) end() CurrentCheck {
	was := *h.Current
	h.Current = nil
	return was
}

// drop ends the hook that works, and remembers that it has still to return.
func (h *SuspensionHooks) drop() (call string) {
	h.Dropped = h.end().Call
	return h.Dropped
}

// returned notes that a call has returned, and reports whether it is the one of a hook that was dropped.
func (h *SuspensionHooks) returned(call string) bool {
	if h.Dropped == "" || h.Dropped != call {
		return false
	}
	h.Dropped = ""
	return true
}

// newExecution forgets a hook whose result does not come to this execution.
func (h *SuspensionHooks) newExecution() { h.Dropped = "" }

// keepResume keeps a resume until its hooks were asked. takeResume returns it, and forgets it.
func (h *SuspensionHooks) keepResume(p PendingResume) {
	h.Resume = &p
	h.measure()
}

// measure counts what the resume takes in the state.
func (h *SuspensionHooks) measure() {
	o := h.Resume.Command
	h.Resume.Size = messageFrame + partFrame + jsonLen(o.Message) + partsJSONLen(o.Parts)
}

// size returns how much space the resume that waits takes.
func (h SuspensionHooks) size() int {
	if h.Resume == nil {
		return 0
	}
	return h.Resume.Size
}

// joinResume lets the sender of the same resume wait for its answer, too.
func (h *SuspensionHooks) joinResume(waits bool) { h.Resume.Signal = h.Resume.Signal && !waits }

func (h *SuspensionHooks) takeResume() PendingResume {
	was := *h.Resume
	h.Resume = nil
	return was
}

// allowResume counts a hook that allows the resume, maybe with other words, and reports whether it was
// the last of n.
func (h *SuspensionHooks) allowResume(message string, n int) (all bool) {
	if message != "" {
		h.Resume.Command.Message = message
		h.measure()
	}
	h.Resume.Next++
	return h.Resume.Next >= n
}

// fetch lets the resume wait for newer instructions. fetching reports whether it does.
func (h *SuspensionHooks) fetch()        { h.Resume.Fetching = true }
func (h SuspensionHooks) fetching() bool { return h.Resume != nil && h.Resume.Fetching }

// resumed lets hooks be told of a resume. told counts one that was, of n.
func (h *SuspensionHooks) resumed(r ToldResume) { h.Resumed = &r }

func (h *SuspensionHooks) told(n int) {
	if h.Resumed.Next++; h.Resumed.Next >= n {
		h.Resumed = nil
	}
}

// dropResumed forgets the hooks that were not told of a resume.
func (h *SuspensionHooks) dropResumed() { h.Resumed = nil }

// denied keeps why a suspension was denied, and suspended forgets it.
func (h *SuspensionHooks) denied(d agent.SuspensionDenied) { h.Denied = &d }
func (h *SuspensionHooks) suspended()                      { h.Denied = nil }

// runsFor returns how long a check has worked.
func (c CurrentCheck) runsFor(at time.Time) agent.Duration { return agent.Duration(at.Sub(c.Since)) }
