package loop

import (
	"encoding/json"
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
	o := &agent.Outcome{Status: agent.StatusCompleted, Checkpoint: "cp-6"}
	e.setOutcome(o)
	e.setUnsaved(agent.Errorf(agent.CodeStoreUnavailable, "no"))
	require.Nil(t, o.Unsaved)
	require.Equal(t, []any{agent.StatusCompleted, "no"}, []any{e.Outcome.Status, e.Outcome.Unsaved.Message})
	require.Equal(t, []string{"cp-6", ""}, []string{o.Checkpoint, e.Outcome.Checkpoint}, "the store does not have the end")
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
	require.Empty(t, FetchedOutcome(o).Citations, "also of a child that is another program's")
	long := agent.Outcome{Text: strings.Repeat("x", maxEndText+1), Citations: o.Citations, Output: []byte(`"` + strings.Repeat("y", maxOutcome) + `"`)}
	fitOutcome(&long, false)
	require.Less(t, len(long.Text), maxEndText+200)
	require.Empty(t, long.Citations)
}

// Another program's outcome may be of any length. What a run fetches of it fits into a history.
func TestAFetchedOutcomeIsBounded(t *testing.T) {
	o := &agent.Outcome{
		Session: "s/b-1", Reason: strings.Repeat("r", 1<<20), Text: strings.Repeat("x", 1<<20), Output: []byte(`"` + strings.Repeat("y", maxOutcome) + `"`),
		Files: make([]agent.File, 2*agent.MaxFiles), Citations: []agent.Citation{{End: 3}}, ArtifactsLeft: -1,
	}
	for i := range 2 * agent.MaxArtifacts {
		o.Artifacts = append(o.Artifacts, agent.Artifact{File: contentFile("s/b-1", strings.Repeat("n", 100), "x"), Version: i + 1, Run: "r", Agent: "b", Call: "t1.1"})
	}
	o.Artifacts = append(o.Artifacts, agent.Artifact{File: contentFile("other", "a.md", "x"), Version: 1, Run: "r", Agent: "b", Call: "t1.1"})
	got := FetchedOutcome(o)
	raw, err := json.Marshal(got)
	require.NoError(t, err)
	require.Less(t, len(raw), 1<<19)
	require.Empty(t, got.Output)
	require.Empty(t, got.Citations)
	require.Len(t, got.Files, agent.MaxFiles)
	require.Equal(t, 2*agent.MaxArtifacts, len(got.Artifacts)+got.ArtifactsLeft, "those of another session are left out")
	require.LessOrEqual(t, artifactsJSONLen(got.Artifacts), artifactShare)

	p := played(t, "begin go", `opened {"agents":[{"agent":"b"}]}`, `calls subagent__b {"task":"x"}`, "child-started s/b-1")
	p.step(ChildEnded{Session: "s/b-1", Outcome: got})
	require.Equal(t, got.Artifacts, p.state.Artifacts.Children, "the run takes what was fetched")
	require.Empty(t, p.state.Children.List[0].Outcome.Artifacts)
	require.LessOrEqual(t, len(p.state.Children.List[0].Outcome.Text), maxChildText)
}

// An outcome says who stopped or cancelled the run, as far as they said, and so do the orders to its children.
func TestAnOutcomeSaysWhoEndedTheRun(t *testing.T) {
	const child = `begin-child {"parent":{"session":"s","run":"r0"},"depth":1}`
	long := strings.Repeat(`\u0000`, 1000)
	for name, tt := range map[string]struct {
		lines []string
		by    string
	}{
		"a stop":                   {[]string{"begin go", "opened {}", `stop {"by":"ana"}`, "says half", `says {"summary":"half"}`, "handoff-made half"}, "ana"},
		"the second stop":          {[]string{"begin go", "opened {}", `stop {"by":"ana"}`, `stop {"by":"bo"}`, "says half", `says {"summary":"half"}`, "handoff-made half"}, "ana"},
		"a cancel":                 {[]string{"begin go", "opened {}", `cancel {"by":"ana"}`, "says half"}, "ana"},
		"a cancel at rest":         {[]string{"begin go", "opened {}", `interrupt {}`, "after 5s", "timer", `cancel {"by":"ana"}`}, "ana"},
		"the second cancel":        {[]string{"begin go", "opened {}", `cancel {"by":"ana"}`, `cancel {"by":"bo"}`}, "ana"},
		"a cancel during a stop":   {[]string{"begin go", "opened {}", `stop {"by":"ana"}`, `cancel {"by":"bo"}`, "says half"}, "bo"},
		"a cancel with a token":    {[]string{"begin go", "opened {}", `cancel update +bo: {"by":"ana"}`, "says half"}, "bo"},
		"nobody":                   {[]string{"begin go", "opened {}", `cancel {}`, "says half"}, ""},
		"Temporal":                 {[]string{"begin go", "opened {}", `pause {"by":"ana"}`, "cancelled", "says half"}, ""},
		"a failure":                {[]string{"begin go", "opened {}", `pause {"by":"ana"}`, `resume {"by":"ana"}`, "fails no_access"}, ""},
		"a stop of the parent":     {[]string{child, "opened {}", `ordered {"verb":"stop","by":"ana","deadline":"20s"}`, "says half", `says {"summary":"half"}`, "handoff-made half"}, "ana"},
		"a cancel of the parent":   {[]string{child, "opened {}", `ordered {"verb":"cancel","by":"ana"}`, "says half"}, "ana"},
		"the parent that is gone":  {[]string{child, "opened {}", `ordered {"verb":"pause","by":"ana"}`, "parent-checked gone", "says half"}, ""},
		"an order that is forged":  {[]string{child, "opened {}", `ordered {"verb":"cancel","by":"` + long + `"}`, "says half"}, fit(strings.Repeat("\x00", 1000), maxBy)},
		"a long name":              {[]string{"begin go", "opened {}", `cancel {"by":"` + long + `"}`, "says half"}, fit(strings.Repeat("\x00", 1000), maxBy)},
		"a cancel before any turn": {[]string{"begin go", `cancel {"by":"ana"}`}, "ana"},
	} {
		o := played(t, tt.lines...).state.End.Outcome
		require.NotNil(t, o, name)
		require.Equal(t, tt.by, o.By, name)
	}

	p := played(t, "begin go", `opened {"agents":[{"agent":"b"}]}`, `calls subagent__b {"task":"one"}`, "child-started s/b-1")
	by := func(in Input) (all []string) {
		_, effects, err := Step(p.state, Moment{At: p.now, Revision: Revision}, in)
		require.NoError(t, err)
		for _, e := range effects {
			if e, ok := e.(OrderChild); ok {
				all = append(all, string(e.Order.Verb)+" by "+e.Order.By)
			}
		}
		return all
	}
	ana := agent.CommandHeader{By: "ana"}
	require.Equal(t, []string{"stop by ana"}, by(CommandReceived{Command: agent.StopCommand{CommandHeader: ana}}))
	require.Equal(t, []string{"cancel by ana"}, by(CommandReceived{Command: agent.CancelCommand{CommandHeader: ana}}))
	p.lines(`stop {"by":"ana","deadline":"20s"}`, `says {"summary":"half"}`, "after 20s", "timer")
	require.Equal(t, []string{"cancel by ana"}, by(HandoffMade{}), "a child that the stop did not end in time")
}

// A parent keeps nothing of who ended a child. An end that could not be stored keeps who it was.
func TestWhoEndedARunIsNotKept(t *testing.T) {
	require.Empty(t, FetchedOutcome(&agent.Outcome{By: strings.Repeat("x", 1<<20)}).By)
	e := End{Outcome: &agent.Outcome{Status: agent.StatusCancelled, By: "ana"}}
	e.setUnsaved(agent.Errorf(agent.CodeStoreUnavailable, "no"))
	require.Equal(t, "ana", e.Outcome.By)
}
