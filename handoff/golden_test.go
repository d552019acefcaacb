package handoff

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
)

var update = flag.Bool("update", false, "rewrite the golden files: a change of one is a breaking change and needs a decision")

var at = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

// skeleton is what the runtime knows of a run that is being stopped.
func skeleton() agent.Handoff {
	return agent.Handoff{
		Session: "trip-42", Run: "01a1b2c3", Agent: "lead", Status: agent.StatusStopped, Task: "Plan a trip to Rome", Reason: "budget meeting",
		Summary:  "Next I will book the hotel.",
		Done:     []agent.WorkItem{{What: "flight_search succeeded", Ref: "t3.1"}},
		InFlight: []agent.WorkItem{{What: "hotel_book was given up", Ref: "t4.1"}},
		Failed:   []agent.WorkItem{{What: "train_search failed: no such station", Ref: "t3.2"}},
		Requests: []agent.Request{{
			ID: "q-7", Type: agent.RequestApproval, Session: "trip-42", Run: "01a1b2c3", Suspension: "s-14", Agent: "lead", Text: "Pay 320 EUR to Hotel Roma?",
			Call: &agent.RequestCall{ID: "t4.2", Tool: "pay", Arguments: json.RawMessage(`{"eur":320}`)}, Digest: "0123456789abcdef", Opened: at, Deadline: at.Add(time.Hour),
		}},
		UnknownEffects: []agent.UnknownEffect{{Call: "t4.1", Tool: "hotel_book", Key: "01a1b2c3/t4.1", Since: "2026-11-21T08:00:00Z"}},
		Artifacts: []agent.Artifact{{
			File: agent.File{Session: "trip-42", Digest: strings.Repeat("0a", 32), Size: 5120, MediaType: "text/markdown", Name: "flights.md"}, Version: 2, Run: "01a1b2c3", Agent: "lead", Call: "t3.1",
		}},
		Usage: agent.Usage{Input: 1200, Output: 300, CacheRead: 800}, Cost: 412_300,
		Remaining: agent.Remaining{Turns: 28, Tokens: 98_500, Cost: 1_587_700},
	}
}

const goodAnswer = `{"summary":"The flights are found, the hotel is **not** certain.\n\n# Next\nAsk Hotel Roma.",
 "done":[{"what":"Found three flights","ref":"flights.md"},{"what":"flight_search  succeeded"}],
 "in_flight":[{"what":"Booking Hotel Roma"}],"not_started":[{"what":"Trains"},{"what":"Museums"}],
 "open_questions":["Is breakfast wanted?"],"decisions":["No night trains: # too loud"],
 "evidence":[{"kind":"url","ref":"https://hotel.example","note":"prices"},{"kind":"call","ref":"t3.1"}],"confidence":0.9}`

// children are the ends of runs below, one of each kind.
func children() []agent.Handoff {
	end := func(n string, status agent.Status, change func(o *agent.Outcome)) agent.Handoff {
		o := agent.Outcome{V: 1, Type: "outcome", Session: "trip-42/" + n, Run: "02" + n, Agent: "scout", Status: status, Reason: string(status), Turns: 2, Usage: agent.Usage{Input: 10, Output: 5}, Cost: 100}
		change(&o)
		h := FromOutcome(o, "")
		h.Task = "Look at " + n
		return h
	}
	below := Complete(agent.Handoff{Session: "trip-42/s-4/s-1", Run: "03", Agent: "clerk", Status: agent.StatusStopped, Task: "Ask", Reason: "parent requested stop"}, "")
	own := Complete(agent.Handoff{
		Session: "trip-42/s-4", Run: "02s-4", Agent: "scout", Status: agent.StatusStopped, Task: "Look at s-4", Reason: "parent requested stop",
		Done: []agent.WorkItem{{What: "museum_list succeeded", Ref: "t1.1"}}, Children: []agent.Handoff{below},
	}, "")
	return []agent.Handoff{
		end("s-1", agent.StatusCompleted, func(o *agent.Outcome) {
			o.Text = "Three flights:\n- AZ 1\n- AZ 2\n- AZ 3"
			o.Artifacts = []agent.Artifact{{File: agent.File{Session: o.Session, Digest: strings.Repeat("1b", 32), Size: 12, MediaType: "text/csv", Name: "prices.csv"}, Version: 1, Run: o.Run, Agent: o.Agent, Call: "t1.1"}}
		}),
		end("s-2", agent.StatusFailed, func(o *agent.Outcome) {
			o.Text, o.Error = "I try again.", agent.Errorf(agent.CodeLimitTurns, "the run reached its limit of 2 turns")
		}),
		end("s-3", agent.StatusCancelled, func(o *agent.Outcome) { o.Turns = 0 }),
		end("s-4", agent.StatusStopped, func(o *agent.Outcome) { o.Handoff = &own }),
		Missing("trip-42/s-5", "02s-5", "scout", "Look at s-5"),
	}
}

func goldens() map[string]agent.Handoff {
	tree := skeleton()
	tree.Children = children()
	bounded := tree
	bounded.Children = children()
	bounded.Children[0].Summary = strings.Repeat("It is far. ", 50_000)
	bounded.Children[0].Done = []agent.WorkItem{{What: strings.Repeat("Far. ", 10_000), By: "trip-42/s-1"}, {What: strings.Repeat("Further. ", 50_000)}}
	return map[string]agent.Handoff{
		"model":   Complete(skeleton(), goodAnswer),
		"rule":    Complete(skeleton(), ""),
		"silent":  Complete(agent.Handoff{Session: "a", Run: "b", Agent: "c", Status: agent.StatusStopped}, "I can't."),
		"tree":    Complete(tree, goodAnswer),
		"bounded": Truncate(Complete(bounded, goodAnswer)),
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

func jsonOf(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return b
}

// A handoff has one form, which a file holds, and one page (HL-54, HA-140, PA-71).
func TestGoldenHandoffs(t *testing.T) {
	for name, h := range goldens() {
		t.Run(name, func(t *testing.T) {
			if name != "bounded" { // it is large
				var pretty bytes.Buffer
				require.NoError(t, json.Indent(&pretty, jsonOf(t, h), "", "  "))
				golden(t, name+".json", append(pretty.Bytes(), '\n'))
				golden(t, name+".md", []byte(Markdown(h)))
			}
		})
	}
	golden(t, "brief.md", []byte(Briefing(goldens()["rule"])))
}

// What this room makes can be said to the next run: nothing of it is blank or
// null, which the wire refuses.
func TestHandoffsAreTakenAsBriefings(t *testing.T) {
	all := goldens()
	all["huge"] = Truncate(deepTree(364, 10_000))
	for name, h := range all {
		var back agent.Start
		data := jsonOf(t, agent.Start{Agent: "lead", Input: agent.Input{Text: "Go on", Briefing: &h}})
		require.NoError(t, durable.Decode(data, &back, agent.MaxPayload), name)
		require.JSONEq(t, string(jsonOf(t, h)), string(jsonOf(t, back.Input.Briefing)), name)
	}
}
