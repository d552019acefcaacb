package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/live"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/openai"
	"github.com/fermata-agents/fermata/worker"
)

// slowProvider is a server of chat completions that streams what a test says, when it says
// it.
type slowProvider chan string

// What a test may say instead of a text: the stream breaks, and it ends.
const (
	streamBreaks = "\x00breaks"
	streamEnds   = "\x00ends"
)

func (p slowProvider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(choices, usage string) {
		fmt.Fprintf(w, "data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"model\":\"one\",\"choices\":[%s]%s}\n\n", choices, usage)
		_ = http.NewResponseController(w).Flush()
	}
	for {
		select {
		case text := <-p:
			switch text {
			case streamBreaks:
				panic(http.ErrAbortHandler)
			case streamEnds:
				send(`{"index":0,"delta":{},"finish_reason":"stop"}`, "")
				send("", `,"usage":{"prompt_tokens":9,"completion_tokens":9,"total_tokens":18}`)
				fmt.Fprint(w, "data: [DONE]\n\n")
				return
			}
			piece, err := json.Marshal(text)
			if err != nil {
				panic(err)
			}
			send(`{"index":0,"delta":{"content":`+string(piece)+`}}`, "")
		case <-r.Context().Done():
			return
		}
	}
}

// joined says when a reader has subscribed.
type joined struct {
	*live.Hub
	readers chan struct{}
}

func (j joined) Subscribe(ctx context.Context, session string) (*live.Subscription, error) {
	defer func() { j.readers <- struct{}{} }()
	return j.Hub.Subscribe(ctx, session)
}

type forecast struct {
	City string   `json:"city"`
	Days []string `json:"days"`
}

// The output of a run comes while the provider streams it. When the stream breaks, what came
// is void, and the next attempt begins again. A reader that comes in the middle gets the
// complete output.
func TestPartialOutput(t *testing.T) {
	t.Parallel()
	provider := make(slowProvider)
	server := httptest.NewServer(provider)
	t.Cleanup(server.Close)
	s := on(t, shared(t))
	t.Cleanup(func() { s.replay(t) })
	w, err := worker.New(s.temporal, &worker.Options{
		TaskQueue: s.queue, Store: s.dir, Logger: zap.NewNop(), Temporal: stopsSoon, Live: s.hub,
		Agents: []agent.Definition{{Name: "tester", Model: "made/one", Output: model.OutputOf[forecast]()}},
		Models: map[string]model.Model{"made": openai.New(&openai.Options{Name: "made", BaseURL: server.URL + "/v1", API: openai.ChatCompletions})},
	})
	require.NoError(t, err)
	require.NoError(t, w.Start(t.Context()))
	t.Cleanup(w.Stop)
	source := joined{s.hub, make(chan struct{}, 9)}
	c := client.New(s.temporal, &client.Options{TaskQueue: s.queue, Store: s.dir, Live: source})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	run, err := c.Start(ctx, "tester", "How is the weather?", nil)
	require.NoError(t, err)
	reads := func() chan string {
		values := make(chan string, 99)
		go func() {
			defer close(values)
			for p, err := range client.Partials[forecast](ctx, run) {
				values <- fmt.Sprintf("%s %v %v", p.Value.City, p.Value.Days, err)
				if p.Outcome != nil {
					values <- string(p.Outcome.Status)
				}
			}
		}()
		<-source.readers
		return values
	}
	first := reads()
	provider <- `{"city":"Ro`
	require.Equal(t, "Ro [] <nil>", <-first)
	provider <- streamBreaks
	require.Equal(t, " [] <nil>", <-first)
	provider <- `{"city":"Oslo"`
	require.Equal(t, "Oslo [] <nil>", <-first)
	late := reads()
	provider <- `,"days":["rain","su`
	require.Equal(t, "Oslo [rain su] <nil>", <-first)
	provider <- `n"]}`
	require.Equal(t, "Oslo [rain sun] <nil>", <-first)
	provider <- streamEnds
	var rest []string
	for v := range late {
		rest = append(rest, v)
	}
	require.Equal(t, []string{"Oslo [rain sun] <nil>", "completed"}, rest[len(rest)-2:])
	require.NotContains(t, rest, "Oslo [rain su] <nil>", "it does not know the beginning")
	require.Equal(t, []string{"Oslo [rain sun] <nil>", "completed"}, []string{<-first, <-first})
}
