package loop

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// A request is open until it is decided; then what became of it is known for a while, and
// the approver's token is spent.
func TestARequestIsDecidedOnce(t *testing.T) {
	r := Requests{}
	r.open(Request{Request: agent.Request{ID: "q-1", Call: &agent.RequestCall{Arguments: []byte(`{}`)}}})
	require.Empty(t, r.Open[0].Call.Arguments, "the call has them")
	r.close(Decided{ID: "q-1", How: "approved", Approver: "ana"})
	require.Equal(t, -1, r.find("q-1"))
	d, ok := r.decided("q-1")
	require.Equal(t, []any{true, "approved"}, []any{ok, d.How})
	require.Equal(t, []bool{true, false, false}, []bool{r.tokenUsed("q-1", "ana"), r.tokenUsed("q-1", "bob"), r.tokenUsed("q-1", "")})
	for n := range maxDecided {
		r.close(Decided{ID: fmt.Sprint("q-", n+2)})
	}
	_, ok = r.decided("q-1")
	require.False(t, ok)
	require.LessOrEqual(t, len(r.Decided), maxDecided)
}

// A listing says what happens at a request's deadline, as the request itself does.
func TestAListingHasTheDefaultOfARequest(t *testing.T) {
	for _, c := range []struct{ name, spec, timeouts, listed, whole string }{
		{"text", "", `{"deadline":"1h","default":"Take the train."}`, "Take the train.", "Take the train."},
		{"long text", "", `{"deadline":"1h","default":"` + strings.Repeat("é", 101) + `"}`, strings.Repeat("é", 99) + "…", strings.Repeat("é", 101)},
		{"redacted text", `"redact":true,`, `{"deadline":"1h","default":"Take the train."}`, "…", "Take the train."},
		{"redacted choice", `"redact":true,`, `{"deadline":"1h","default":"car"}`, "car", "car"},
		{"no default", "", `{"deadline":"1h"}`, "", ""},
		{"no deadline", "", `{"default":"car"}`, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &player{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
			p.lines("begin go", `opened {"flow":true,`+c.spec+`"toolset":[{"name":"ask_user"}],"answer_timeouts":`+c.timeouts+`}`,
				`flow {"steps":[{"tool":"ask_user","provider_id":"ask","arguments":{"question":"How?","choices":["car","bike"]}}]}`)
			memo := p.state.Memo()
			require.Len(t, memo.Requests, 1)
			require.Equal(t, c.listed, memo.Requests[0].Default)
			require.Equal(t, c.whole, p.state.wireRequests()[0].Default)
			raw, err := json.Marshal(memo)
			require.NoError(t, err)
			require.Equal(t, c.listed != "", strings.Contains(string(raw), `"default"`))
		})
	}
}

// A person who is asked whether a step had its effect sees that it fails at the deadline.
func TestAStepOfUnknownEffectFailsAtTheDeadline(t *testing.T) {
	p := &player{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	p.lines("begin go", `opened {"flow":true,"toolset":[{"name":"pay"}],"answer_timeouts":{"deadline":"1h","default":"Take the train."}}`,
		`flow {"steps":[{"tool":"pay","provider_id":"a","arguments":{}}]}`, "result t1.1 unknown gone")
	require.Equal(t, "fail", p.state.Memo().Requests[0].Default)
	p.lines("after 1h", "timer")
	require.Len(t, p.state.Calls.Unknown, 1)
}
