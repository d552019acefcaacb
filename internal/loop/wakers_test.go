package loop

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/fermata-agents/fermata/agent"
)

// In every story, whenever a run says that it is suspended, what ends the suspension is armed:
// the timer for its time, a taker for its event, its answer or its resume (HL-14, OA-114).
func TestEverySuspensionHasItsWaker(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	require.NoError(t, err)
	met := map[string]int{}
	for _, path := range files {
		archive, err := txtar.ParseFile(path)
		require.NoError(t, err)
		p := &player{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), watch: func(_ State, m Moment, _ Input, done *step) {
			if done.Status() == agent.StatusSuspended {
				checkWakers(t, path, done.State, m, met)
			}
		}}
		for line := range strings.Lines(string(archive.Files[0].Data)) {
			if input, ok := strings.CutPrefix(line, "> "); ok {
				p.line(strings.TrimSpace(input))
			}
		}
	}
	for _, waker := range []string{"time", "event", "question", "approval", "resume"} {
		require.Positive(t, met[waker], waker)
	}
}

// checkWakers requires that each thing that a suspended run waits for can come.
func checkWakers(t *testing.T, path string, s State, m Moment, met map[string]int) {
	t.Helper()
	v := s.Suspension()
	require.NotNil(t, v, path)
	taken := func(waker string, c agent.Command) {
		_, _, err := Step(s, m, CommandReceived{Command: c})
		if code := agent.CodeOf(err); code == agent.CodeQueueFull || code == agent.CodeExpired {
			return // limits of the agent's own: of events that wait at a held daemon, and resume_within
		}
		require.NoError(t, err, "%s: %s waits for %s", path, v.ID, waker)
		met[waker]++
	}
	come := s.Park != nil && s.Park.Met != nil // and a hold keeps the run
	if !come && v.Expires.After(m.At) {
		require.False(t, s.NextTimer.IsZero() || s.NextTimer.After(v.Expires), "%s: %s has no timer for %s", path, v.ID, v.Expires)
		met["time"]++
	}
	if v.Conditions != nil && !come {
		for _, c := range v.Conditions.List() {
			if c.Event != nil && c.Event.Match == nil {
				taken("event", agent.EmitCommand{Topic: c.Event.Topic})
			}
		}
	}
	for _, q := range v.Requests {
		switch {
		case q.Type == agent.RequestQuestion && len(q.Choices) == 0 && q.Schema == nil:
			taken("question", agent.AnswerCommand{Request: q.ID, Text: "yes"})
		case q.Type == agent.RequestApproval && len(q.Approvers) == 0: // a decision of an approver needs a token
			taken("approval", agent.RejectCommand{Request: q.ID, Reason: "no"})
		}
	}
	if v.Kind == agent.SuspensionHeld && v.Owner == agent.OwnerOperator {
		taken("resume", agent.ResumeCommand{})
	}
}
