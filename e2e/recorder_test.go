package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"

	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/anthropic"
	"github.com/fermata-agents/fermata/provider/azure"
	"github.com/fermata-agents/fermata/provider/bedrock"
	"github.com/fermata-agents/fermata/provider/gemini"
	"github.com/fermata-agents/fermata/provider/openai"
	"github.com/fermata-agents/fermata/provider/vertex"
)

// provider is one that files are sent to.
type provider struct {
	model string // by its own name for it
	path  string // of a request
	form  form
	make  func(base string) model.Model
	// inResults says that the model takes files within results.
	inResults bool
}

const fakeKey = "a-key-of-no-account"

var providers = map[string]provider{
	"anthropic": {"claude-sonnet-5-5", "/v1/messages", messagesForm, func(base string) model.Model {
		return anthropic.New(&anthropic.Options{APIKey: fakeKey, BaseURL: base})
	}, true},
	"openai-responses": {"gpt-5.4", "/v1/responses", responsesForm, func(base string) model.Model {
		return openai.New(&openai.Options{APIKey: fakeKey, BaseURL: base + "/v1", API: openai.Responses, Own: true})
	}, true},
	"openai-chat": {"gpt-5.4", "/v1/chat/completions", chatForm, func(base string) model.Model {
		return openai.New(&openai.Options{APIKey: fakeKey, BaseURL: base + "/v1", API: openai.ChatCompletions, Own: true})
	}, false},
	"azure-responses": {"gpt-5.4", "/openai/v1/responses", responsesForm, func(base string) model.Model {
		return azure.New(&azure.Options{APIKey: fakeKey, Endpoint: base})
	}, true},
	"azure-chat": {"gpt-5.4", "/openai/deployments/gpt-5.4/chat/completions", chatForm, func(base string) model.Model {
		return azure.New(&azure.Options{APIKey: fakeKey, Endpoint: base, APIVersion: "2024-10-21"})
	}, false},
	"gemini": {"gemini-3.8-flash", "/v1beta/models/gemini-3.8-flash:streamGenerateContent", generateForm, func(base string) model.Model {
		return gemini.New(&gemini.Options{APIKey: fakeKey, BaseURL: base})
	}, true},
	"bedrock": {"global.anthropic.claude-sonnet-5-5", "/model/global.anthropic.claude-sonnet-5-5/converse-stream", converseForm, func(base string) model.Model {
		return bedrock.New(&bedrock.Options{APIKey: fakeKey, BaseURL: base, Region: "eu-central-1"})
	}, false},
	"vertex-claude": {"claude-sonnet-5-5", "/v1/projects/p/locations/global/publishers/anthropic/models/claude-sonnet-5-5:streamRawPredict", messagesForm, onVertex, true},
	"vertex-gemini": {"gemini-3.8-flash", "/v1beta1/projects/p/locations/global/publishers/google/models/gemini-3.8-flash:streamGenerateContent", generateForm, onVertex, true},
}

func onVertex(base string) model.Model {
	return vertex.New(&vertex.Options{Project: "p", Location: "global", BaseURL: base, Tokens: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: fakeKey})})
}

// rule answers a request by its newest words.
type rule struct {
	words     string
	says      string
	calls     string // a tool
	arguments string
}

// recorded is a request as a provider got it.
type recorded struct {
	words string // the words that decided the answer
	body  []byte
	files []sentFile
}

// recorder stands in for a provider: it keeps each request, checks it, and answers as the provider
// does.
type recorder struct {
	*httptest.Server
	provider
	t     *testing.T
	rules []rule

	mu    sync.Mutex
	asked []recorded
	hold  string        // the words of a request that is not answered, once
	held  chan struct{} // closed when it has come
}

func standFor(t *testing.T, p provider, rules []rule) *recorder {
	t.Helper()
	r := &recorder{provider: p, t: t, rules: rules, held: make(chan struct{})}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return // the worker was killed
	}
	files, err := r.form.files(body)
	best, at := rule{}, -1
	for _, one := range r.rules {
		if i := bytes.LastIndex(body, []byte(one.words)); i > at {
			best, at = one, i
		}
	}
	if err != nil || at < 0 || q.Method != http.MethodPost || q.URL.Path != r.path {
		r.t.Errorf("%s %s is not a request of this provider: %v", q.Method, q.URL.Path, err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if r.keep(recorded{best.words, body, files}) {
		<-q.Context().Done()
		return
	}
	w.Header().Set("Content-Type", r.form.contentType)
	_, _ = io.WriteString(w, r.answer(best, body, files)) // a worker that was killed reads nothing
}

// keep reports whether the request is to be held.
func (r *recorder) keep(q recorded) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, q)
	if r.hold != q.words {
		return false
	}
	r.hold = ""
	close(r.held)
	return true
}

// answer counts tokens about as a provider does: an image has as many, whatever its size.
func (r *recorder) answer(a rule, body []byte, files []sentFile) string {
	tokens := len(body)
	for _, f := range files {
		tokens -= len(f.Data) / 3 * 4
	}
	tokens = tokens/4 + 1500*len(files)
	if a.calls == "" {
		return r.form.says(a.says, tokens)
	}
	return r.form.calls(fmt.Sprint(len(body)), a.calls, a.arguments, tokens)
}

// holdAt makes the next request with these words wait until its sender is gone.
func (r *recorder) holdAt(words string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hold = words
}

// of returns the requests with these newest words.
func (r *recorder) of(words string) (found []recorded) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range r.asked {
		if q.words == words {
			found = append(found, q)
		}
	}
	require.NotEmpty(r.t, found, words)
	return found
}
