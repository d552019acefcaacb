package agent

import (
	"fmt"
	"slices"
	"strings"
)

// CheckPoint is where in a run a check is made.
type CheckPoint string

// The points.
const (
	PointVerify           CheckPoint = "verify"            // before the run completes
	PointBeforeRun        CheckPoint = "before_run"        // before the first turn of a run
	PointBeforeCalls      CheckPoint = "before_calls"      // before the calls of a reply are made
	PointAfterTurn        CheckPoint = "after_turn"        // after a turn, before the next one
	PointBeforeSuspension CheckPoint = "before_suspension" // before a pause or a park suspends the run
	PointAfterSuspension  CheckPoint = "after_suspension"  // when the suspension is stored
	PointBeforeResume     CheckPoint = "before_resume"     // before a resume is carried out
	PointAfterResume      CheckPoint = "after_resume"      // before the run goes on
)

// PointStalled is where a judge of verify whose cadence says stalled is asked: a model repeats a call, which
// is not made yet. [Definition.ChecksAt] finds its checks in verify.
const PointStalled CheckPoint = "stalled"

// CheckPoints returns every point that has checks of its own in a definition.
func CheckPoints() []CheckPoint {
	return []CheckPoint{PointVerify, PointBeforeRun, PointBeforeCalls, PointAfterTurn, PointBeforeSuspension, PointAfterSuspension, PointBeforeResume, PointAfterResume}
}

// Path returns where in a definition the i-th check of the point is, such as "verify.checks[0]".
func (p CheckPoint) Path(i int) string {
	return fmt.Sprintf("%s.checks[%d]", p.field(), i)
}

// field returns the field of a definition that has the point's checks.
func (p CheckPoint) field() string {
	if p == PointVerify {
		return string(p)
	}
	return "hooks." + string(p)
}

// check refuses a list of checks that can never be made, with [CodeInvalidInput].
func (p CheckPoint) check(checks []Check) error {
	if len(checks) > maxChecks {
		return Errorf(CodeInvalidInput, "%s.checks has %d checks; at most %d are made", p.field(), len(checks), maxChecks).WithPath(p.field() + ".checks")
	}
	for i, c := range checks {
		path := p.Path(i)
		if err := c.check(path); err != nil {
			return err
		}
		if c.Max != 0 && p != PointVerify {
			return Errorf(CodeInvalidInput, "%s: only a check of verify has max", path).WithPath(path + ".max")
		}
		if err := c.checkJudging(p, path); err != nil {
			return err
		}
		if slices.ContainsFunc(checks[:i], func(o Check) bool { return o.Name == c.Name }) {
			return Errorf(CodeInvalidInput, "%s: two checks have the name %s", path, c.Name).WithPath(path + ".name")
		}
	}
	return p.checkMaySkip(checks)
}

// AroundSuspension reports whether the point is one of the four around a suspension and a resume.
func (p CheckPoint) AroundSuspension() bool {
	return p == PointBeforeSuspension || p == PointBeforeResume || p.Tells()
}

// Tells reports whether what is called at the point only gets to know, and decides nothing.
func (p CheckPoint) Tells() bool { return p == PointAfterSuspension || p == PointAfterResume }

// checksAt returns the list of a point's checks; nil for an unknown point.
func (d *Definition) checksAt(p CheckPoint) *[]Check {
	switch p {
	case PointVerify:
		return &d.Verify.Checks
	case PointBeforeSuspension:
		return &d.Hooks.BeforeSuspension.Checks
	case PointAfterSuspension:
		return &d.Hooks.AfterSuspension.Checks
	case PointBeforeResume:
		return &d.Hooks.BeforeResume.Checks
	case PointAfterResume:
		return &d.Hooks.AfterResume.Checks
	case PointBeforeRun:
		return &d.Hooks.BeforeRun.Checks
	case PointBeforeCalls:
		return &d.Hooks.BeforeCalls.Checks
	case PointAfterTurn:
		return &d.Hooks.AfterTurn.Checks
	}
	return nil
}

// ChecksAt returns the checks that are made at a point, in their order.
func (d *Definition) ChecksAt(p CheckPoint) []Check {
	if p == PointStalled {
		return slices.DeleteFunc(slices.Clone(d.Verify.Checks), func(k Check) bool { return k.Cadence.When != CadenceStalled })
	}
	if list := d.checksAt(p); list != nil {
		return *list
	}
	return nil
}

// Checks returns the checks of all points.
func (d *Definition) Checks() (all []Check) {
	for _, p := range CheckPoints() {
		all = append(all, d.ChecksAt(p)...)
	}
	return all
}

// CheckTools returns the names of the tools that the agent's checks call; shell_run for a command.
func (d *Definition) CheckTools() (names []string) {
	for _, k := range d.Checks() {
		kind, name := k.Kind(), k.ToolName()
		if (kind == CheckByTool || kind == CheckByCommand) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// CheckCircle returns a [CodeInvalidInput] error if the checks of the named agent lead back to it, by way
// of agents that check each other. In such a circle no answer is ever accepted. Workers call it.
func CheckCircle(list []Definition, name string) error {
	asks := map[string][]string{}
	for _, d := range list {
		for _, k := range d.Checks() {
			if k.Agent != "" {
				asks[d.Name] = append(asks[d.Name], k.Agent)
			}
		}
	}
	paths, seen := [][]string{{name}}, map[string]bool{}
	for len(paths) > 0 {
		path := paths[0]
		paths = paths[1:]
		for _, next := range asks[path[len(path)-1]] {
			longer := append(slices.Clone(path), next)
			if next == name {
				return Errorf(CodeInvalidInput, "its checks lead back to itself (%s): each answer would be checked by a run whose answer is checked again; take the check from one of them", strings.Join(longer, " asks "))
			}
			if !seen[next] {
				seen[next] = true
				paths = append(paths, longer)
			}
		}
	}
	return nil
}

// EditChecks calls edit for the checks of all points. Definitions that share the lists with this one
// do not change.
func (d *Definition) EditChecks(edit func(p CheckPoint, i int, k *Check)) {
	for _, p := range CheckPoints() {
		list := d.checksAt(p)
		*list = slices.Clone(*list)
		for i := range *list {
			edit(p, i, &(*list)[i])
		}
	}
}
