package main

import (
	"bytes"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/internal/testenv"
)

// The test binary is the other processes too, as the program is.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && commands[os.Args[1]] != nil {
		main()
		return
	}
	m.Run()
}

// A small chaos finds nothing, and has done what it is for, in two rounds and with two
// builds.
func TestChaos(t *testing.T) {
	testenv.Long(t)
	o := &options{seed: 7, lasts: 12 * time.Second, patience: 2 * time.Minute, runs: 10, stories: 15, alternate: true, keep: t.TempDir()}
	clean, err := o.prepare(t.Context())
	require.NoError(t, err)
	defer clean()
	r, err := o.rounds(t.Context())
	require.NoError(t, err)
	require.NoError(t, r.verdict())
	require.Equal(t, o.stories, r.Stories)
	require.Positive(t, r.Newer, "executions that began under the newer build")
	require.Less(t, r.Newer, r.Executions, "executions that began under this one")
	require.Positive(t, total(r.Mishaps))
	require.Positive(t, total(r.Late))
	require.Positive(t, r.Strikes[disturbKill])
	require.Positive(t, r.Effects)
	require.Positive(t, r.Steps)
	require.Positive(t, r.Followed)
	require.GreaterOrEqual(t, r.Executions, o.stories)
	var text bytes.Buffer
	require.NoError(t, r.show(&text, false))
	require.Contains(t, text.String(), "findings: 0")
	left, err := os.ReadDir(o.keep)
	require.NoError(t, err)
	require.Empty(t, left, "a round without findings keeps nothing")
}

// A seed stands for one plan.
func TestPlan(t *testing.T) {
	o := &options{seed: 1, runs: 64, lasts: time.Minute}
	one := newPlan(o)
	require.Equal(t, one, newPlan(o))
	require.NotEqual(t, one.Commands, newPlan(&options{seed: 2, runs: 64, lasts: time.Minute}).Commands)
	require.Len(t, one.Stories, 64)
}

// The auditor sees in a log what must not be.
func TestLedger(t *testing.T) {
	started := agent.Event{Type: agent.EventRunStarted, Started: &agent.Started{Run: "r1"}}
	calls := agent.Event{Type: agent.EventMessage, Message: &agent.Message{Role: agent.RoleAssistant, Parts: []agent.Part{
		{Type: agent.PartToolCall, Call: &agent.ToolCall{ID: "t1.1", Tool: payTool}},
	}}}
	results := agent.Event{Type: agent.EventMessage, Message: &agent.Message{Role: agent.RoleTool, Parts: []agent.Part{
		{Type: agent.PartToolResult, Result: &agent.ToolResult{Call: "t1.1", Tool: payTool, Status: agent.CallOK}},
	}}}
	flows := agent.Event{Type: agent.EventRunStarted, Started: &agent.Started{Run: "r1", Spec: &agent.Spec{Flow: true}}}
	step := func(id, path string) agent.Event {
		return agent.Event{Type: agent.EventMessage, Message: &agent.Message{Role: agent.RoleAssistant, Parts: []agent.Part{
			{Type: agent.PartToolCall, Call: &agent.ToolCall{ID: id, ProviderID: path, Tool: payTool}},
		}}}
	}
	came := func(id string, status agent.CallStatus) agent.Event {
		return agent.Event{Type: agent.EventMessage, Message: &agent.Message{Role: agent.RoleTool, Parts: []agent.Part{
			{Type: agent.PartToolResult, Result: &agent.ToolResult{Call: id, Tool: payTool, Status: status}},
		}}}
	}
	ended := agent.Event{Type: agent.EventRunCompleted, Outcome: &agent.Outcome{Status: agent.StatusCompleted}}
	waits := agent.Event{Type: agent.EventRunSuspended, Suspension: &agent.Suspension{ID: "s-1"}}
	opened := agent.Event{Type: agent.EventRequestOpened, Request: &agent.Request{ID: "q-1"}}
	answered := agent.Event{Type: agent.EventRequestAnswered, Answer: &agent.Answered{Request: "q-1"}}
	for name, c := range map[string]struct {
		log  []agent.Event
		want string
	}{
		"a sound one":             {[]agent.Event{started, calls, results, waits, opened, answered, ended, started, ended}, ""},
		"a call without result":   {[]agent.Event{started, calls, ended}, "no result"},
		"life after the end":      {[]agent.Event{started, ended, waits}, "follows the end"},
		"a run in a run":          {[]agent.Event{started, started}, "before the one before had ended"},
		"two suspensions at once": {[]agent.Event{started, waits, waits}, "s-1 opens"},
		"a request twice":         {[]agent.Event{started, opened, opened}, "is opened again"},
		"a flow":                  {[]agent.Event{flows, step("t1.1", "a"), step("t2.1", "b"), came("t2.1", agent.CallSkipped), step("t3.1", "b"), came("t1.1", agent.CallOK), came("t3.1", agent.CallOK), ended}, ""},
		"an open step":            {[]agent.Event{flows, step("t1.1", "a"), step("t2.1", "b"), came("t1.1", agent.CallOK), ended}, "no result: [t2.1]"},
		"a step twice":            {[]agent.Event{flows, step("t1.1", "a"), came("t1.1", agent.CallOK), step("t2.1", "a")}, "is asked for again"},
		"two results of a step":   {[]agent.Event{flows, step("t1.1", "a"), came("t1.1", agent.CallOK), came("t1.1", agent.CallOK)}, "which is not open"},
		"an answer twice":         {[]agent.Event{started, opened, answered, answered}, "decided before"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReport(&options{})
			require.Equal(t, c.want == "", len(found(r, c.log)) == 0, "%v", r.Findings)
			if c.want != "" {
				require.Contains(t, r.Findings[0], c.want)
			}
		})
	}
	r := newReport(&options{})
	l := newLedger("x", r.find)
	l.read([]client.Event{{Event: agent.Event{Seq: 1, Type: agent.EventRunStarted, Started: started.Started}}, {Event: agent.Event{Seq: 3, Type: agent.EventTurnStarted}}})
	require.Contains(t, r.Findings[0], "event 3 follows event 1")
}

func found(r *report, log []agent.Event) []string {
	var events []client.Event
	for i, e := range log {
		e.Seq = int64(i + 1)
		events = append(events, client.Event{Event: e})
	}
	newLedger("x", r.find).read(events)
	return r.Findings
}

// The auditor sees in the journal what must not be.
func TestEffects(t *testing.T) {
	for name, c := range map[string]struct {
		journal string
		status  agent.CallStatus
		want    string
	}{
		"paid":                {"begin r/t1.1 pay\ndone r/t1.1 pay\n", agent.CallOK, ""},
		"nobody knows":        {"begin r/t1.1 pay\ndone r/t1.1 pay\n", agent.CallUnknown, ""},
		"said and not paid":   {"begin r/t1.1 pay\n", agent.CallOK, "has no effect"},
		"paid twice":          {"begin r/t1.1 pay\ndone r/t1.1 pay\nbegin r/t1.1 pay\ndone r/t1.1 pay\n", agent.CallOK, "more than once"},
		"failed and paid":     {"begin r/t1.1 pay\ndone r/t1.1 pay\n", agent.CallFailed, "has its effect"},
		"rejected and begun":  {"begin r/t1.1 pay\n", agent.CallRejected, "was begun"},
		"nobody's":            {"begin r/t1.1 pay\ndone r/t1.1 pay\nbegin r/t9.1 pay\n", agent.CallOK, "no log knows"},
		"booked without file": {"begin r/t1.1 book\n", agent.CallOK, "nothing is booked"},
		"a step paid twice":   {"begin r/once/pay do\ndone r/once/pay do\nbegin r/once/pay do\n", agent.CallOK, "more than once"},
	} {
		t.Run(name, func(t *testing.T) {
			d := &desk{t.TempDir()}
			require.NoError(t, d.open())
			require.NoError(t, os.WriteFile(filepath.Join(d.dir, "journal"), []byte(c.journal), 0o600))
			tool := payTool
			if name == "booked without file" {
				tool = bookTool
			}
			r := newReport(&options{})
			l := newLedger("x", r.find)
			key := "r/t1.1"
			if name == "a step paid twice" {
				key, tool = "r/once/pay", agent.DoTool
			}
			l.results[key] = agent.ToolResult{Call: "t1.1", Tool: tool, Status: c.status}
			a := &audit{operators: &operators{report: r, desk: d}, ledgers: map[string]*ledger{"x": l}}
			require.NoError(t, a.effects())
			if c.want == "" {
				require.Empty(t, r.Findings)
				return
			}
			require.Len(t, r.Findings, 1)
			require.Contains(t, r.Findings[0], c.want)
		})
	}
}

// The newer build of -alternate is this one with edits: each has to find its place.
func TestTheNewerBuildsEditsApply(t *testing.T) {
	t.Parallel()
	texts, err := newerSources(filepath.Join("..", ".."))
	require.NoError(t, err)
	for path, text := range texts {
		_, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		require.NoError(t, err)
	}
}
