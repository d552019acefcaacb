package model_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// house is a model of one's own, which takes a prompt and answers with one object.
type house struct {
	*model.Endpoint
	client *http.Client
	url    string
}

// newHouse makes the model at an address.
func newHouse(url string) model.Model {
	return &house{model.NewEndpoint("house", url), model.HTTPClient(nil), url}
}

// Info says what is known of the model.
func (h *house) Info(string) model.Info { return model.Info{Window: 32_000} }

// Generate asks once: the runtime makes the attempts, waits and counts.
func (h *house) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
	prompt := req.Instructions
	for _, m := range req.Messages {
		prompt += "\n" + string(m.Role) + ": " + m.Text()
	}
	body, err := json.Marshal(map[string]string{"model": req.Model, "prompt": prompt})
	if err != nil {
		return nil, h.Faultf(agent.FaultBadRequest, 0, 0, "house was not asked: %v", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(body))
	if err != nil {
		return nil, h.Faultf(agent.FaultBadRequest, 0, 0, "house was not asked: %v", err)
	}
	res, err := h.client.Do(r)
	if ctx.Err() != nil {
		return nil, h.Cancelled(ctx.Err())
	}
	if err != nil {
		return nil, h.Unreachable(err, "the network")
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, h.Faultf(model.KindOf(res.StatusCode), res.StatusCode, model.RetryAfter(res.Header, time.Now()), "house answered %s", res.Status)
	}
	answer := model.WatchBody(res, emit)
	data, err := answer.Whole()
	var said struct {
		Text    string
		In, Out int64
	}
	if err != nil || json.Unmarshal(data, &said) != nil {
		return nil, h.Truncated(res.StatusCode, answer.Bytes(), err)
	}
	emit(model.Delta{Text: said.Text})
	return &model.Reply{
		Parts:  []agent.Part{{Type: agent.PartText, Text: said.Text}},
		Finish: model.FinishStop,
		Usage:  agent.Usage{Input: said.In, Output: said.Out},
	}, nil
}

// An adapter translates a request and its answer, and sorts failures.
func ExampleModel() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"text":"It was delivered broken.","in":40,"out":6}`)
	}))
	defer server.Close()

	m := newHouse(server.URL) // worker.Options.Models: {"house": m}, Definition.Model: "house/small"
	reply, err := m.Generate(context.Background(), &model.Request{
		Model:    "small",
		Messages: []agent.Message{agent.TextMessage(agent.RoleUser, "What is wrong with order 7?")},
	}, func(model.Delta) {})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(reply.Parts[0].Text, reply.Usage.Total(), "tokens")
	// Output: It was delivered broken. 46 tokens
}
