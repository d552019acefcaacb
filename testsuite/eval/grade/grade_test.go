package grade

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// graded is a trial that looked up an order and paid after an approval.
func graded() *Facts {
	return &Facts{
		Case: "refund", N: 2, Task: "Refund order 7", Status: agent.StatusCompleted, Reason: "done", Text: " Refunded 12 EUR. \n",
		Calls: []Call{
			{Tool: "lookup", Arguments: json.RawMessage(`{"order":7}`), Status: agent.CallOK},
			{Tool: "bank__pay", Arguments: json.RawMessage(`{"eur":12,"to":"ana"}`), Status: agent.CallOK},
		},
		Requests: []Request{{Type: agent.RequestApproval, Tool: "bank__pay", Text: "Run bank__pay?", Decision: "approve"}},
		Turns:    3, Tokens: 900, Cost: agent.Dollar / 50, Duration: agent.Duration(2 * time.Second),
	}
}

// spec reads a grader as a suite has it.
func spec(t *testing.T, text string) *Spec {
	t.Helper()
	var s Spec
	require.NoError(t, json.Unmarshal([]byte(text), &s), text)
	require.NoError(t, s.Check(), text)
	return &s
}

// outcomes tries a grader on trials; an empty reason is a pass.
func outcomes(t *testing.T, tests map[string]string, change func(*Facts)) {
	t.Helper()
	f := graded()
	if change != nil {
		change(f)
	}
	for text, want := range tests {
		v := spec(t, text).Verdict(f)
		if want == "" {
			require.True(t, v.Pass, "%s: %s", text, v.Reason)
			require.Empty(t, v.Reason)
			continue
		}
		require.False(t, v.Pass, text)
		require.Contains(t, v.Reason, want, text)
	}
}

func TestExact(t *testing.T) {
	outcomes(t, map[string]string{`{"exact": "Refunded 12 EUR."}`: "", `{"exact": "Refunded"}`: `the answer is "Refunded 12 EUR.", not "Refunded"`}, nil)
	outcomes(t, map[string]string{`{"exact": "{\"b\": [1], \"a\": 2}"}`: "", `{"exact": "{\"a\":2}"}`: "the answer is"}, func(f *Facts) { f.Output = json.RawMessage(`{"a":2,"b":[1]}`) })
	outcomes(t, map[string]string{`{"exact": "1.0"}`: `the answer is "1"`}, func(f *Facts) { f.Text = "1" })
}

func TestContainsAndLacks(t *testing.T) {
	outcomes(t, map[string]string{
		`{"contains": ["12", "EUR"]}`: "", `{"contains": ["12", "USD"]}`: `does not contain "USD"`,
		`{"lacks": ["USD"]}`: "", `{"lacks": ["USD", "Refunded"]}`: `contains "Refunded"`,
	}, nil)
}

func TestRegex(t *testing.T) {
	outcomes(t, map[string]string{`{"regex": "Refunded \\d+ (EUR|USD)"}`: "", `{"regex": "^EUR"}`: "does not match"}, nil)
}

func TestSchema(t *testing.T) {
	s := `{"schema": {"type": "object", "required": ["kind"], "properties": {"kind": {"enum": ["bug", "wish"]}}}}`
	outcomes(t, map[string]string{s: "the answer is not JSON"}, nil)
	outcomes(t, map[string]string{s: ""}, func(f *Facts) { f.Output = json.RawMessage(`{"kind":"bug"}`) })
	outcomes(t, map[string]string{s: "kind"}, func(f *Facts) { f.Text = `{"kind":"question"}` })
}

func TestStatus(t *testing.T) {
	outcomes(t, map[string]string{`{"status": "completed"}`: "", `{"status": "suspended"}`: "the run is completed (done), not suspended"}, nil)
	outcomes(t, map[string]string{`{"status": "completed"}`: "the run is suspended (nobody answers its approval: \"fs_read\"), not completed"}, func(f *Facts) {
		f.Status, f.Reason, f.Requests = agent.StatusSuspended, "", []Request{{Type: agent.RequestApproval, Tool: "fs_read"}}
	})
}

func TestCalls(t *testing.T) {
	outcomes(t, map[string]string{
		`{"calls": {"made": [{"tool": "lookup"}]}}`:                                                                                                  "",
		`{"calls": {"made": [{"tool": "bank__*", "min": 1, "max": 1, "status": "ok"}]}}`:                                                             "",
		`{"calls": {"made": [{"tool": "bank__pay", "arguments": {"type": "object", "properties": {"to": {"type": "string", "pattern": "^ana"}}}}]}}`: "",
		`{"calls": {"made": [{"tool": "bank__pay", "arguments": {"type": "object", "properties": {"eur": {"type": "integer", "maximum": 10}}}}]}}`:   "matching calls of bank__pay: 0, and at least 1",
		`{"calls": {"made": [{"tool": "bank__*", "max": 0}]}}`:                                                                                       "1, and at most 0",
		`{"calls": {"made": [{"tool": "lookup", "status": "failed"}]}}`:                                                                              "0, and at least 1",
		`{"calls": {"never": ["delete", "shell_*"]}}`:                                                                                                "",
		`{"calls": {"never": ["bank__*"]}}`:                                                                                                          "called bank__pay",
		`{"calls": {"order": ["lookup", "bank__*"]}}`:                                                                                                "",
		`{"calls": {"order": ["bank__pay", "lookup"]}}`:                                                                                              "not in the order bank__pay, lookup",
		`{"calls": {"exactly": ["lookup", "bank__pay"]}}`:                                                                                            "",
		`{"calls": {"exactly": ["lookup"]}}`:                                                                                                         "the calls were lookup, bank__pay, not lookup",
	}, nil)
	outcomes(t, map[string]string{`{"calls": {"never": ["delete"]}}`: "only 2000 can be graded"}, func(f *Facts) { f.CallsLeft = 1 })
}

func TestAsked(t *testing.T) {
	outcomes(t, map[string]string{
		`{"asked": {"type": "approval", "tool": "bank__*", "decision": "approve"}}`: "",
		`{"asked": {"type": "question"}}`:                                           "0, and at least 1",
		`{"asked": {"type": "question", "max": 0}}`:                                 "",
		`{"asked": {"match": "^Run", "max": 0}}`:                                    "1, and at most 0",
	}, nil)
}

func TestAtMost(t *testing.T) {
	outcomes(t, map[string]string{
		`{"at_most": {"cost_usd": 0.02, "turns": 3, "tokens": 900, "duration": "2s", "calls": 2}}`: "",
		`{"at_most": {"cost_usd": 0.01}}`: "cost $0.02, and $0.01 are allowed",
		`{"at_most": {"turns": 2}}`:       "took 3 turns",
		`{"at_most": {"tokens": 899}}`:    "used 900 tokens",
		`{"at_most": {"duration": "1s"}}`: "took 2s, and 1s are allowed",
		`{"at_most": {"calls": 1}}`:       "made 2 calls",
	}, nil)
}

// What can't decide is refused before a trial is paid for.
func TestSpecsThatAreRefused(t *testing.T) {
	for text, says := range map[string]string{
		`{}`:                                            "exactly one of exact, contains",
		`{"exact": "a", "regex": "b"}`:                  "this one has 2",
		`{"regex": "("}`:                                "regex: error parsing regexp",
		`{"schema": {"$ref": "#"}}`:                     "schema: ",
		`{"status": "running"}`:                         `not "running"`,
		`{"calls": {}}`:                                 "needs made, never",
		`{"calls": {"made": [{}]}}`:                     "made[0] needs a tool",
		`{"asked": {"min": 3, "max": 1}}`:               "min is not above max",
		`{"at_most": {}}`:                               "needs cost_usd",
		`{"at_most": {"turns": -1}}`:                    "negative",
		`{"contains": ["a", ""]}`:                       "an empty text",
		`{"judge": {"model": "a/b"}}`:                   "needs a model and a rubric",
		`{"command": {"run": []}}`:                      "needs run",
		`{"command": {"run": ["a"], "timeout": "11m"}}`: "at most 10m",
		`{"function": {}}`:                              "needs the name",
	} {
		var s Spec
		require.NoError(t, json.Unmarshal([]byte(text), &s), text)
		err := s.Check()
		require.ErrorIs(t, err, agent.CodeInvalidInput, text)
		require.ErrorContains(t, err, says, text)
	}
}

// A reason may quote a model, so it is bounded.
func TestReasonsAreBounded(t *testing.T) {
	f := graded()
	f.Text = strings.Repeat("é", 1<<20)
	v := spec(t, `{"contains": ["`+strings.Repeat("x", 5_000)+`"]}`).Verdict(f)
	require.Less(t, len(v.Reason), 1_200)
}
