package e2e

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/openai"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// thinker is a server of OpenAI's Responses with its own search. A model that is spent has
// no quota left.
type thinker struct {
	asked   chan string // the requests, in order
	replies chan string // the items of the next replies
	spent   string
}

func (s *thinker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.asked <- string(body)
	w.Header().Set("Content-Type", "application/json")
	if s.spent != "" && strings.Contains(string(body), `"model":"`+s.spent+`"`) {
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, `{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}`)
		return
	}
	fmt.Fprintf(w, `{"id":"resp_1","object":"response","status":"completed","model":"one","output":[%s],"usage":{"input_tokens":9,"output_tokens":3,"total_tokens":12}}`, <-s.replies)
}

// What a model thought, under the provider's ids, and what the provider's own tools did goes
// back to that model: from another cluster, to which the session has moved, as well. No other
// model, that stands in for it, is sent any of it.
func TestReasoningGoesBackToItsModel(t *testing.T) {
	t.Parallel()
	const (
		thought  = `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"ZW5j"}`
		searched = `{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"the price","queries":["the price"]}}`
	)
	said := func(text string) string {
		return `{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"` + text + `","annotations":[]}]}`
	}
	provider := &thinker{asked: make(chan string, 9), replies: make(chan string, 9)}
	server := httptest.NewServer(provider)
	t.Cleanup(server.Close)
	paid := make(chan string, 9)
	def, _, pay := payer(paid)
	def.Name, def.Model, def.Fallbacks, def.Tools = "tester", "made/one", []string{"made/two"}, []string{"pay"}
	works := func(s *stage) {
		w, err := worker.New(s.temporal, &worker.Options{
			TaskQueue: s.queue, Store: s.dir, Logger: zap.NewNop(), Agents: []agent.Definition{def}, Tools: []tool.Tool{pay}, ExportKeys: exportKeys, Temporal: stopsSoon,
			Models: map[string]model.Model{"made": openai.New(&openai.Options{Name: "made", BaseURL: server.URL + "/v1", API: openai.Responses, ServerTools: []model.ServerTool{model.WebSearch}})},
		})
		require.NoError(t, err)
		require.NoError(t, w.Start(t.Context()))
		t.Cleanup(w.Stop)
	}
	s := on(t, shared(t))
	t.Cleanup(func() { s.replay(t) })
	works(s)
	provider.replies <- strings.Join([]string{searched, thought, said("It is 800 EUR."),
		`{"type":"function_call","id":"fc_1","call_id":"call_1","name":"pay","arguments":"{\"Eur\":800}","status":"completed"}`}, ",")
	run := s.begin(t, "Pay what it costs", nil)
	was := s.suspended(t, run)
	<-provider.asked

	there := elsewhere(t)
	works(there)
	_, err := there.bring(t, s.export(t, run.Session, client.ExportOptions{}))
	require.NoError(t, err)
	_, err = there.Approve(t.Context(), was.Requests[0], &client.ApproveOptions{By: "ana"})
	require.NoError(t, err)
	provider.replies <- said("Paid.")
	require.Equal(t, "Paid.", there.rest(t, there.here(t, run.Session)).Text)
	require.Contains(t, <-provider.asked, searched+","+thought+",", "as the provider wrote it")

	provider.spent = "one"
	provider.replies <- said("You are welcome.")
	_, o := there.run(t, "Thanks", &client.StartOptions{Session: run.Session})
	require.Equal(t, "You are welcome.", o.Text, "%+v", cmp.Or(o.Error, &agent.Error{}))
	require.Contains(t, <-provider.asked, thought)
	another := <-provider.asked
	require.Contains(t, another, `"model":"two"`)
	require.Contains(t, another, "It is 800 EUR.", "what was said is everybody's")
	for _, own := range []string{"rs_1", "ws_1", "ZW5j"} {
		require.NotContains(t, another, own)
	}
}
