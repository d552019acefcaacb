package agent

import (
	"fmt"
	"time"
)

// HookList are the hooks at one point. Each is a tool or a command.
type HookList struct {
	// Checks are called one after the other; at most 8. Each may take 10s, or its timeout.
	Checks []Check `json:"checks,omitempty"`
}

// How long a hook around a suspension or a resume may take: by default, and at most.
const (
	defaultHookTimeout = Duration(10 * time.Second)
	maxHookTimeout     = Duration(time.Minute)
)

// suspensionDefaults fills in the defaults of the hooks around a suspension and a resume.
func (d *Definition) suspensionDefaults() {
	d.EditChecks(func(p CheckPoint, _ int, k *Check) {
		if !p.AroundSuspension() {
			return
		}
		k.Timeout = or(k.Timeout, defaultHookTimeout)
		// A broken hook must not take away what always works. To resume again costs little.
		if p != PointBeforeResume {
			k.OnError = CheckErrorAccept
		}
	})
}

// checkSuspensionHooks refuses hooks around a suspension or a resume that can never work, with
// [CodeInvalidInput].
func (d Definition) checkSuspensionHooks() error {
	for _, p := range CheckPoints() {
		if !p.AroundSuspension() {
			continue
		}
		if err := p.check(d.ChecksAt(p)); err != nil {
			return err
		}
		for i, k := range d.ChecksAt(p) {
			path, why := p.Path(i), ""
			switch kind := k.Kind(); {
			case kind != CheckByTool && kind != CheckByCommand:
				why = "a hook around a suspension or a resume is a tool or a command; no model is asked while the run is held"
			case k.Timeout > maxHookTimeout:
				why = fmt.Sprintf("timeout is %s; such a hook may take %s at most", k.Timeout, maxHookTimeout)
			case p == PointBeforeResume && k.OnError == CheckErrorHold:
				why = "on_error is hold, and the run is held already; use veto or accept"
			case p != PointBeforeResume && k.OnError != "" && k.OnError != CheckErrorAccept:
				why = fmt.Sprintf("on_error is %s, and a hook that fails can't prevent this; leave it out", k.OnError)
			default:
				continue
			}
			return Errorf(CodeInvalidInput, "%s: %s", path, why).WithPath(path)
		}
	}
	return nil
}

// SuspensionHook is what the tool of a hook around a suspension or a resume is called with, unless the
// hook has arguments of its own.
type SuspensionHook struct {
	// Point says which hook it is, such as [PointBeforeResume].
	Point      CheckPoint     `json:"point"`
	Suspension HookSuspension `json:"suspension"`
	// Resume is the resume that a hook before a resume is asked about; nil for other hooks.
	Resume *HookResume `json:"resume,omitempty"`
	// Resumed says what ended the suspension; nil before.
	Resumed *Resumed `json:"resumed,omitempty"`
}

// HookSuspension is a suspension as hooks are told of it.
type HookSuspension struct {
	ID string `json:"id"`
	// Kind is what the run waits for; empty after a resume.
	Kind SuspensionKind `json:"kind,omitempty"`
	// Initiator says who caused the suspension, and Cause how: pause, interrupt, park and others.
	Initiator Initiator `json:"initiator"`
	Cause     string    `json:"cause,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	// By is who has paused or interrupted the run, if somebody has.
	By    string    `json:"by,omitempty"`
	Turn  int       `json:"turn"`
	Since time.Time `json:"since"`
}

// HookResume is a resume that is not carried out yet.
type HookResume struct {
	By string `json:"by,omitempty"`
	// Message is what it says to the model. Cut means that the hook gets 16 KiB of it.
	Message string `json:"message,omitempty"`
	Cut     bool   `json:"cut,omitempty"`
	// Files counts the files and other parts beside the message.
	Files       int  `json:"files,omitempty"`
	FromSummary bool `json:"from_summary,omitempty"`
	// Refresh means that the run would go on with the agent's newest instructions.
	Refresh bool `json:"refresh,omitempty"`
}

// SuspensionDenied says that a hook has denied a suspension, and the run went on.
type SuspensionDenied struct {
	// Suspension is its id, and Kind what the run would have waited for.
	Suspension string         `json:"suspension"`
	Kind       SuspensionKind `json:"kind"`
	// Hook is the hook's name, and Reason what it said.
	Hook   string    `json:"hook"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
}
