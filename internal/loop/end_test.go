package loop

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// A stop gives tools half of its time, and an outcome that other states share is not
// changed by what follows.
func TestAnEndIsReached(t *testing.T) {
	e, at := End{}, time.Unix(0, 0)
	e.startStop(agent.StopCommand{Deadline: agent.Duration(time.Minute)}, at)
	require.Equal(t, []any{at.Add(30 * time.Second), agent.ReasonRequested}, []any{e.Stopping.ToolsUntil, e.Stopping.Reason})
	require.Equal(t, []bool{false, true}, []bool{e.Stopping.over(at), e.Stopping.over(at.Add(time.Minute))})
	e.startGrace(at, "stopped")
	require.Equal(t, "stopped", e.endGrace().Reason)
	require.Nil(t, e.endGrace())
	o := &agent.Outcome{Status: agent.StatusCompleted}
	e.setOutcome(o)
	e.setFailure(agent.Errorf(agent.CodeStoreUnavailable, "no"))
	require.Equal(t, []agent.Status{agent.StatusCompleted, agent.StatusFailed}, []agent.Status{o.Status, e.Outcome.Status})
}

// An outcome has what its text cites; that of a child has none, and neither has one whose text is cut.
func TestOutcomeHasCitations(t *testing.T) {
	cited := []agent.Part{
		{Type: agent.PartText, Text: "Grüße. ", Citations: []agent.Citation{{End: 7, Title: "A"}}},
		{Type: agent.PartText, Text: "Rom.", Citations: []agent.Citation{{End: 3, URL: "https://b.example"}}},
	}
	d := newDrive(t, agent.Spec{Definition: agent.Definition{Name: "a"}})
	d.step(ModelReplied{AskSeq: d.state.Turn.AskSeq, Reply: wire.Reply{Finish: agent.FinishStop, Parts: cited}})
	o := d.state.End.Outcome
	require.Equal(t, "Grüße. Rom.", o.Text)
	require.Equal(t, []agent.Citation{{End: 7, Title: "A"}, {Start: 9, End: 12, URL: "https://b.example"}}, o.Citations)
	require.Equal(t, cited, d.said().Parts, "the transcript has them with their parts")

	child := *o
	fitOutcome(&child, true)
	require.Empty(t, child.Citations)
	require.Empty(t, ShortOutcome(o).Citations, "also of a child that is another program's")
	long := agent.Outcome{Text: strings.Repeat("x", maxEndText+1), Citations: o.Citations, Output: []byte(`"` + strings.Repeat("y", maxOutcome) + `"`)}
	fitOutcome(&long, false)
	require.Less(t, len(long.Text), maxEndText+200)
	require.Empty(t, long.Citations)
}
