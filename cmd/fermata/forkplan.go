package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/render"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

// printPlan shows what a fork or a retry keeps and repeats.
func (a *forkRun) printPlan(plan agent.ForkPlan) {
	p := plan.Checkpoint
	where := "the session's start"
	if p.Run != "" {
		where = fmt.Sprintf("turn %d of run %s", p.Turn, p.Run)
	}
	if len(plan.Steps) == 0 {
		a.Print("%s from %s (%s); the model sees %s", a.what, p.ID, where, counted(p.Messages, "message"))
		if len(plan.Kept) > 0 {
			a.Print("kept: %s", effects(p.Run, plan.Kept))
		}
	} else {
		a.Print("%s from %s (%s)", a.what, p.ID, where)
		a.printSteps(plan.Steps)
	}
	steps := stepsByCall(plan)
	after := slices.DeleteFunc(slices.Clone(plan.MayRepeat), func(e agent.SideEffect) bool {
		_, listed := steps[agent.IdempotencyKey(e.Run, e.Call)] // above, with the reason
		return listed
	})
	if len(after) > 0 {
		a.Print("may happen again: %s", effects(p.Run, after))
	}
}

// fates say what happens to steps of a flow, in the order in which they are listed.
var fates = []struct {
	why  agent.AgainReason
	text string
}{
	{"", "kept"},
	{agent.AgainFailed, "made again, because a retry makes again what did not succeed"},
	{agent.AgainOpen, "made again, because there is no result"},
	{agent.AgainDropped, "made again only if the flow waits for it this time"},
	{agent.AgainRedo, "made again, because --redo names it"},
	{agent.AgainApproval, "asked anew, because people approved it for the run before"},
	{agent.AgainInput, "made again if its arguments change with the input"},
	{agent.AgainAgent, "made again, because another agent made it"},
}

func (a *forkRun) printSteps(steps []agent.StepPlan) {
	const most = 20
	for _, fate := range fates {
		var names []string
		for _, s := range steps {
			if s.Again == fate.why {
				names = append(names, fmt.Sprintf("%s (%s)", shortName(s.Path), orOpen(s.Status)))
			}
		}
		if n := len(names) - most; n > 0 {
			names = append(names[:most], fmt.Sprintf("and %d more", n))
		}
		if len(names) > 0 {
			a.Print("%s: %s", fate.text, strings.Join(names, ", "))
		}
	}
}

func orOpen(s agent.CallStatus) string {
	if s == "" {
		return "open"
	}
	return string(s)
}

func shortName(name string) string { return untrusted.Cut(untrusted.Name(name), 60) }

// stepsByCall returns the steps of a plan by the idempotency keys of their calls.
func stepsByCall(plan agent.ForkPlan) map[string]agent.StepPlan {
	steps := map[string]agent.StepPlan{}
	for _, s := range plan.Steps {
		steps[agent.IdempotencyKey(s.Run, s.Call)] = s
	}
	return steps
}

// unexpected returns the calls that a user has to allow: all that may happen again, except for what a
// retry is for, which is to make again what failed. Nobody knows what a step with an unknown outcome
// has done, so it has to be allowed.
func unexpected(plan agent.ForkPlan) []agent.SideEffect {
	steps := stepsByCall(plan)
	return slices.DeleteFunc(slices.Clone(plan.MayRepeat), func(e agent.SideEffect) bool {
		s := steps[agent.IdempotencyKey(e.Run, e.Call)]
		return s.Again == agent.AgainFailed && s.Status == agent.CallFailed
	})
}

// effects names calls, and their runs if these are others.
func effects(run string, list []agent.SideEffect) string {
	var names []string
	for _, e := range list {
		of := ""
		if e.Run != run {
			of = " of " + render.ShortRun(e.Run)
		}
		name := e.Tool
		if e.Step != "" {
			name = e.Step
		}
		names = append(names, fmt.Sprintf("%s %s%s (%s)", shortName(name), e.Call, of, e.Status))
	}
	return strings.Join(names, ", ")
}
