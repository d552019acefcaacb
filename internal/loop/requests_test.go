package loop

import (
	"encoding/json"
	"fmt"
	"slices"
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

// Only the runtime's own question counts its context as the runtime's words: anybody may ask with its choices.
func TestAQuestionWithTheRuntimesChoicesIsMeasured(t *testing.T) {
	asked := agent.Request{Type: agent.RequestQuestion, Text: "x", Context: strings.Repeat("<", 4096), Choices: []string{"again", "done", "fail"}, Call: &agent.RequestCall{ID: "t1.1", Tool: "pay"}}
	require.Greater(t, Request{Request: asked, RetryCall: true}.sized("x").Size, 6*4096)
	require.Equal(t, 4097, requestSize(asked))
	asked.Cause, asked.Text = causeUnknown, strings.Repeat("<", 4096)
	require.Less(t, Request{Request: asked}.sized("").Size, 2048)
	require.Zero(t, requestSize(asked))

	r := Requests{Open: []Request{{Request: asked}}}
	r.recount()
	require.LessOrEqual(t, jsonLen(r.Open[0].Context), maxWhy, "an import may say anything")
	require.LessOrEqual(t, jsonLen(r.Open[0].Text), maxReason)
}

// An answer that is too long is cut, also beside an output; only the output itself may be too long.
func TestALongAnswerIsCutBesideItsOutput(t *testing.T) {
	var k Checks
	require.True(t, k.propose(Proposal{Text: strings.Repeat("x", 500_000), Output: json.RawMessage(`{"total":1}`)}, proposalShare))
	require.False(t, k.Proposal.Cut, "the output is whole")
	require.LessOrEqual(t, proposalJSONLen(*k.Proposal), k.Proposal.Size)
	require.Equal(t, proposalShare, k.Proposal.Size)
	for _, most := range []int{-1000, 0, 200, 3000} { // a state that is full may have less than none
		require.True(t, k.propose(Proposal{Text: strings.Repeat("<\xff", 5000)}, most))
		require.GreaterOrEqual(t, k.Proposal.Size, max(most, proposalJSONLen(*k.Proposal)))
		require.True(t, k.Proposal.Cut)
	}
	output := json.RawMessage(`{"total":1}`)
	bare := proposalJSONLen(Proposal{Output: output})
	require.True(t, k.propose(Proposal{Text: strings.Repeat("x", 600), Output: output}, bare+500), "the mark of a cut has no space, and the output has")
	require.Equal(t, []any{"", output, bare}, []any{k.Proposal.Text, k.Proposal.Output, k.Proposal.Size})
	require.False(t, k.propose(Proposal{Text: "x", Output: output}, bare-1))
	cited := Proposal{Text: "short", Citations: slices.Repeat([]agent.Citation{{URL: "https://example.com/a"}}, 100)}
	require.True(t, k.propose(cited, 2000))
	require.Equal(t, []any{"short", false, proposalJSONLen(Proposal{Text: "short"})}, []any{k.Proposal.Text, k.Proposal.Cut, k.Proposal.Size}, "only the citations were too long")
	require.False(t, k.propose(Proposal{Text: "x", Output: json.RawMessage(`"` + strings.Repeat("x", proposalShare) + `"`)}, proposalShare))
}

// A person can be asked about a step of which not even an error is known.
func TestAStepIsUnknownWithoutAWord(t *testing.T) {
	c := Calls{List: []Call{{State: CallAwaitingAnswer}}}
	c.markUnknown(0, "")
	require.NotEmpty(t, c.List[0].Unknown)
}

// A message about changed files is bounded, whatever their names are.
func TestChangedFilesAreBounded(t *testing.T) {
	for _, name := range []string{"", "x", "\xff", strings.Repeat("y", 100)} {
		text, bytes := changedFiles(agent.FilesSeen{Changed: slices.Repeat([]string{name}, 600_000)})
		require.Less(t, len(text), 2*maxNews, "%q", name)
		require.LessOrEqual(t, jsonLen(text), resultJSONLen("", bytes), "%q", name)
		require.Contains(t, text, " more")
	}
}
