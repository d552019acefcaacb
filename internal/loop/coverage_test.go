package loop

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
)

// storyStep is one step of a story.
type storyStep struct {
	before, after State
	moment        Moment
	input         Input
}

// rulesOfNoStory are the rules that no story shows, with the test that does.
var rulesOfNoStory = map[string]string{
	"skip a call that is too long for a suspended run, or for a new execution": "TestAHeldTurnKeepsWhatFits", // its calls have 100 kB
}

// A rule that never applies, or an arrow that no run takes, is no part of the machine: each is in a story.
// An arrow that is missing in a table stops a story by itself.
func TestEachRuleAndArrowIsInAStory(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	require.NoError(t, err)
	var steps []storyStep
	fired := map[string]bool{}
	for _, path := range files {
		archive, err := txtar.ParseFile(path)
		require.NoError(t, err)
		p := &player{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), watch: func(before State, m Moment, in Input, done *step) {
			steps = append(steps, storyStep{before, done.State, m, in})
			for _, name := range done.fired {
				fired[name] = true
			}
		}}
		for line := range strings.Lines(string(archive.Files[0].Data)) {
			if input, ok := strings.CutPrefix(line, "> "); ok {
				p.line(strings.TrimSpace(input))
			}
		}
	}
	for _, r := range rules {
		require.NotEqual(t, rulesOfNoStory[r.name] != "", fired[r.name], "%q is in a story, or in rulesOfNoStory", r.name)
	}
	neededArrows(t, steps, runTransitions, func(s storyStep, from, to RunPhase) bool { return s.before.Phase == from && s.after.Phase == to })
	neededArrows(t, steps, turnTransitions, func(s storyStep, from, to TurnPhase) bool {
		return s.before.Turn.Phase == from && s.after.Turn.Phase == to
	})
	neededArrows(t, steps, callTransitions, func(s storyStep, from, to CallState) bool {
		return slices.ContainsFunc(s.before.Calls.List, func(c Call) bool { return c.State == from })
	})
}

// neededArrows takes each arrow out of a table, and requires that a step then fails. It tries the steps
// first that seem to take the arrow.
func neededArrows[P ~string](t *testing.T, steps []storyStep, moves transitions[P], seems func(s storyStep, from, to P) bool) {
	t.Helper()
	for _, from := range slices.Sorted(maps.Keys(moves)) {
		all := moves[from]
		for i, to := range all {
			moves[from] = slices.Delete(slices.Clone(all), i, i+1)
			fails := func(s storyStep) (failed bool) {
				defer func() { failed = recover() != nil }()
				_, _, _ = Step(s.before, s.moment, s.input)
				return false
			}
			needed := slices.ContainsFunc(steps, func(s storyStep) bool { return seems(s, from, to) && fails(s) }) ||
				slices.ContainsFunc(steps, func(s storyStep) bool { return !seems(s, from, to) && fails(s) })
			moves[from] = all
			if from == P(RunImporting) && to == P(RunActive) { // an import takes the state with its phase
				continue
			}
			assert.True(t, needed, "no story takes the arrow of %T from %q to %q", to, from, to)
		}
	}
}
