package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/internal/window"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/openai"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

const (
	windowTokens = 100_000
	chapters     = 75
	chapterBytes = 40_000
	firstBytes   = 500_000
)

// narrow is a server of a model with a small window, over HTTP. It has a book read
// to it, chapter by chapter, and notes what is wrong with what it is asked.
type narrow struct {
	mu        sync.Mutex
	asked     int // for chapters
	summaries int
	most      int // tokens of one request
	last      int // tokens of the last request for a chapter
	// around are, for each summary, the tokens of the last request for a chapter before it, and of the
	// first one after it.
	around [][2]int
	faults []string
}

type chatMessage struct {
	Role    string `json:"role"`
	Content any    `json:"content"`
	Calls   []struct {
		ID string `json:"id"`
	} `json:"tool_calls"`
	CallID string `json:"tool_call_id"`
}

func (n *narrow) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var in struct {
		Messages []chatMessage `json:"messages"`
	}
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &in)
	}
	if err != nil || len(in.Messages) == 0 {
		n.faults = append(n.faults, fmt.Sprintf("a request of %d bytes without messages: %v", len(body), err))
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	tokens := len(body) / 4
	n.most = max(n.most, tokens)
	w.Header().Set("Content-Type", "application/json")
	if tokens > windowTokens {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":{"message":"too long","code":"context_length_exceeded"}}`)
		return
	}
	n.check(in.Messages)
	summed := n.summaries
	message := n.answer(fmt.Sprint(in.Messages[len(in.Messages)-1].Content))
	n.note(tokens, n.summaries > summed)
	fmt.Fprintf(w, `{"id":"c","object":"chat.completion","created":1,"model":"narrow","choices":[{"index":0,"message":%s,"finish_reason":"stop"}],"usage":{"prompt_tokens":%d,"completion_tokens":20,"total_tokens":%d}}`, message, tokens, tokens+20)
}

// check wants every result behind its call.
func (n *narrow) check(messages []chatMessage) {
	open := map[string]bool{}
	for i, m := range messages {
		if m.Role != "tool" && len(open) > 0 {
			n.faults = append(n.faults, fmt.Sprintf("a call without a result before message %d", i))
		}
		for _, c := range m.Calls {
			open[c.ID] = true
		}
		if m.Role == "tool" && !open[m.CallID] {
			n.faults = append(n.faults, fmt.Sprintf("a result without a call in message %d", i))
		}
		delete(open, m.CallID)
	}
}

// note notes the tokens of a request.
func (n *narrow) note(tokens int, summary bool) {
	if summary {
		n.around = append(n.around, [2]int{n.last})
		return
	}
	if last := len(n.around) - 1; last >= 0 && n.around[last][1] == 0 {
		n.around[last][1] = tokens
	}
	n.last = tokens
}

func (n *narrow) answer(last string) string {
	switch {
	case strings.Contains(last, "Sum up this conversation so far"):
		n.summaries++
		return `{"role":"assistant","content":"so far: whales"}`
	case n.asked == chapters:
		return `{"role":"assistant","content":"I have read it"}`
	}
	n.asked++
	return fmt.Sprintf(`{"role":"assistant","content":"","tool_calls":[{"id":"x","type":"function","function":{"name":"chapter","arguments":"{\"n\":%d}"}}]}`, n.asked)
}

// compactions compares what the log says of each compaction with the requests that the server counted.
// Between the last of them and the compaction a chapter came.
func (n *narrow) compactions(t *testing.T, view *store.View) (count int) {
	t.Helper()
	for _, e := range view.Events() {
		c := e.Compaction
		if c == nil {
			continue
		}
		require.Equal(t, agent.CompactedForWindow, c.Reason)
		require.Equal(t, agent.CompactionHybrid, c.Strategy)
		require.Less(t, count, len(n.around))
		before, after := n.around[count][0], n.around[count][1]
		if count == 0 {
			before = firstBytes / 4 // the request had only a part of it
		}
		require.InEpsilon(t, before+chapterBytes/4, c.Before, 0.01)
		require.InEpsilon(t, after, c.After, 0.01)
		known := view.UpTo(e.Seq - 1)
		asked := *known.Spec()
		asked.Instructions = asked.Text(agent.TextLoopContractText) // ends those of an agent with tools; this one has no others
		m := window.NewTokenEstimator(known, &asked)
		require.Equal(t, m.Tokens(known.Entries()), c.Before, "by the runtime's own estimate, it is exact")
		require.Equal(t, m.Tokens(view.UpTo(e.Seq).Entries()), c.After)
		count++
	}
	return count
}

// A conversation of 3 MB and a message of half a megabyte, with a model that takes
// 100,000 tokens: the run goes on, no request is over the window, no call is torn
// from its result, each compaction says its sizes as the server counted them, and the transcript has
// every word (HA-80, HA-82, HA-85).
func TestAConversationOverTheWindow(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	n := &narrow{}
	// A client of an older test's server may still ask at this port.
	paths := http.NewServeMux()
	paths.Handle("POST /v1/chat/completions", n)
	server := httptest.NewServer(paths)
	t.Cleanup(server.Close)
	s := on(t, shared(t))
	t.Cleanup(func() { s.replay(t) })
	type in struct {
		N int `json:"n"`
	}
	chapter := tool.New("chapter", "reads a chapter", func(_ context.Context, _ *tool.Call, in in) (string, error) {
		return fmt.Sprintf("chapter %d: %s", in.N, strings.Repeat("whale ", chapterBytes/6)), nil
	}, &tool.Options{ReadOnly: true})
	w, err := worker.New(s.temporal, &worker.Options{
		TaskQueue: s.queue, Store: s.dir, Logger: zap.NewNop(), Tools: []tool.Tool{chapter},
		Agents: []agent.Definition{{Name: "tester", Model: "narrow/one", Tools: []string{"chapter"}, Limits: agent.Limits{Turns: chapters + 10}}},
		Models: map[string]model.Model{"narrow": openai.New(&openai.Options{Name: "narrow", BaseURL: server.URL + "/v1", Infos: map[string]model.Info{"one": {Window: windowTokens}}})},
	})
	require.NoError(t, err)
	require.NoError(t, w.Start(t.Context()))
	t.Cleanup(w.Stop)

	_, out := s.runFor(t, 3*time.Minute, "Call me Ishmael. "+strings.Repeat("sea ", firstBytes/4), nil)
	require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
	require.Equal(t, "I have read it", out.Text)
	require.Empty(t, n.faults)
	require.LessOrEqual(t, n.most, windowTokens, "no request was over the window, not even once")
	require.Greater(t, n.most, windowTokens/2, "nor was it compacted too soon")
	require.Greater(t, n.summaries, 5)
	t.Logf("%d summaries; the longest request had %d tokens", n.summaries, n.most)

	view, err := s.log().View(t.Context(), must(s.dir.Head(t.Context(), out.Session)).Digest)
	require.NoError(t, err)
	raw := 0
	for _, e := range view.Events() {
		if e.Compaction == nil && e.Message != nil {
			raw += e.Message.Size()
		}
	}
	require.Equal(t, n.summaries, n.compactions(t, view))
	require.Greater(t, raw, chapters*chapterBytes-chapters*10+firstBytes, "the transcript is whole")
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
