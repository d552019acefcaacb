package conformance_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite/conformance"
)

// The protocol of an invented provider, Tin. It is asked with one object, and
// answers with lines of JSON. The last line has an end.
type (
	tinRequest struct {
		Model       string    `json:"model"`
		System      string    `json:"system,omitempty"`
		Turns       []tinTurn `json:"turns"`
		Tools       []tinTool `json:"tools,omitempty"`
		Longest     int       `json:"longest,omitempty"`
		Temperature *float64  `json:"temperature,omitempty"`
	}
	tinTurn struct {
		By     string  `json:"by"` // user or model
		Text   string  `json:"text,omitempty"`
		Call   *tinUse `json:"call,omitempty"`
		Result *tinUse `json:"result,omitempty"`
	}
	tinUse struct {
		ID        string `json:"id,omitempty"`
		Tool      string `json:"tool,omitempty"`
		Arguments string `json:"arguments,omitempty"`
		Text      string `json:"text,omitempty"`
		Failed    bool   `json:"failed,omitempty"`
	}
	tinTool struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Schema      json.RawMessage `json:"schema"`
	}
	tinLine struct {
		Text  string    `json:"text,omitempty"`
		Call  *tinUse   `json:"call,omitempty"`
		Piece string    `json:"piece,omitempty"` // of the last call's arguments
		Error *tinError `json:"error,omitempty"`
		End   *tinEnd   `json:"end,omitempty"`
	}
	tinError struct {
		Kind    string `json:"kind"`
		Message string `json:"message"`
	}
	tinEnd struct {
		Why    string `json:"why"`
		Read   int64  `json:"read"`
		Cached int64  `json:"cached"`
		Wrote  int64  `json:"wrote"`
	}
)

// tin is the adapter.
type tin struct {
	endpoint *model.Endpoint
	client   *http.Client
	url, key string
}

func newTin(url, key string) model.Model {
	return &tin{model.NewEndpoint("tin", url, key), model.HTTPClient(nil), url, key}
}

func (m *tin) Info(string) model.Info { return model.Info{} }

func (m *tin) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
	if ctx.Err() != nil {
		return nil, m.endpoint.Cancelled(ctx.Err())
	}
	body, err := m.request(req)
	if err != nil {
		return nil, m.endpoint.Faultf(agent.FaultBadRequest, 0, 0, "tin was not called: %v", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url, bytes.NewReader(body))
	if err != nil {
		return nil, m.endpoint.Faultf(agent.FaultBadRequest, 0, 0, "tin was not called: %v", err)
	}
	r.Header.Set("Authorization", m.key)
	res, err := m.client.Do(r)
	switch {
	case ctx.Err() != nil:
		return nil, m.endpoint.Cancelled(ctx.Err())
	case err != nil:
		return nil, m.endpoint.Unreachable(err, "the network")
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, m.refused(res)
	}
	return m.read(ctx, res, emit)
}

// request is what is asked. Ids of calls are unique in it, whatever they were.
func (m *tin) request(req *model.Request) ([]byte, error) {
	out := tinRequest{Model: req.Model, System: req.Instructions, Longest: req.MaxOutputTokens, Temperature: req.Temperature}
	for _, t := range req.Tools {
		schema, err := model.InputSchema(t, nil)
		if err != nil {
			return nil, err
		}
		out.Tools = append(out.Tools, tinTool{t.Name, t.Description, schema})
	}
	id := model.CallIDs(req.Messages)
	for i, msg := range req.Messages {
		by := "user"
		if msg.Role == agent.RoleAssistant {
			by = "model"
		}
		for _, p := range msg.Parts {
			switch p.Type {
			case agent.PartText:
				out.Turns = append(out.Turns, tinTurn{By: by, Text: p.Text})
			case agent.PartToolCall:
				out.Turns = append(out.Turns, tinTurn{By: by, Call: &tinUse{ID: id(i, p.Call.ID), Tool: p.Call.Tool, Arguments: string(p.Call.Arguments) + p.Call.Malformed}}) // one of them is empty
			case agent.PartToolResult:
				r := p.Result
				out.Turns = append(out.Turns, tinTurn{By: by, Result: &tinUse{ID: id(i, r.Call), Text: r.Text, Failed: r.Status != agent.CallOK}})
			}
		}
	}
	return json.Marshal(out)
}

// refused sorts an answer that is no reply: by what Tin says, or else by its status.
func (m *tin) refused(res *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10)) // a part of it is enough
	kind, said := model.KindOf(res.StatusCode), string(body)
	var line tinLine
	if json.Unmarshal(body, &line) == nil && line.Error != nil {
		kind, said = tinKind(line.Error.Kind, kind), line.Error.Message
	}
	return m.endpoint.Faultf(kind, res.StatusCode, model.RetryAfter(res.Header, time.Now()), "tin answered %d: %s", res.StatusCode, said)
}

func tinKind(said string, otherwise agent.FaultKind) agent.FaultKind {
	switch said {
	case "no_money":
		return agent.FaultQuota
	case "too_long":
		return agent.FaultContext
	case "busy":
		return agent.FaultOverload
	case "wait":
		return agent.FaultRateLimit
	case "who_are_you":
		return agent.FaultAuth
	case "nonsense":
		return agent.FaultBadRequest
	}
	return otherwise
}

// read follows an answer to its end.
func (m *tin) read(ctx context.Context, res *http.Response, emit func(model.Delta)) (*model.Reply, error) {
	body := model.WatchBody(res, emit)
	var text strings.Builder
	var calls []*tinUse
	in := bufio.NewReader(body)
	for {
		data, err := in.ReadBytes('\n')
		var line tinLine
		switch {
		case ctx.Err() != nil:
			return nil, m.endpoint.Cancelled(ctx.Err())
		case err != nil || json.Unmarshal(data, &line) != nil:
			return nil, m.endpoint.Truncated(res.StatusCode, body.Bytes(), err)
		case line.Error != nil:
			return nil, m.endpoint.Faultf(tinKind(line.Error.Kind, agent.FaultTransient), res.StatusCode, 0, "tin broke off its reply: %s", line.Error.Message)
		case line.Call != nil:
			calls = append(calls, line.Call)
		case line.Piece != "" && len(calls) > 0:
			calls[len(calls)-1].Arguments += line.Piece
		case line.Text != "":
			text.WriteString(line.Text)
			emit(model.Delta{Text: line.Text})
		case line.End != nil:
			return tinReply(text.String(), calls, line.End), nil
		}
	}
}

func tinReply(text string, calls []*tinUse, end *tinEnd) *model.Reply {
	reply := &model.Reply{Usage: agent.Usage{Input: end.Read + end.Cached, CacheRead: end.Cached, Output: end.Wrote}}
	if text != "" {
		reply.Parts = append(reply.Parts, agent.Part{Type: agent.PartText, Text: text})
	}
	for _, c := range calls {
		reply.Parts = append(reply.Parts, model.CallPart(c.ID, c.Tool, c.Arguments))
	}
	switch {
	case end.Why == "longest":
		reply.Finish = model.FinishLength
	case end.Why == "refused":
		reply.Finish = model.FinishContentFilter
	case len(calls) > 0:
		reply.Finish = model.FinishToolCalls
	default:
		reply.Finish = model.FinishStop
	}
	return reply
}

// tinProvider plays Tin: it reads what the adapter sends, and writes what the adapter reads.
var tinProvider = conformance.HTTPProvider{
	New:   newTin,
	Read:  readTin,
	Reply: replyTin,
	Refuse: func(kind agent.FaultKind, message string) (int, string) {
		return tinStatus[kind], breakTin(kind, message)
	},
	Break: breakTin,
	Ping:  "{}\n",
}

var tinStatus = map[agent.FaultKind]int{
	agent.FaultRateLimit: 429, agent.FaultOverload: 503, agent.FaultTransient: 500, agent.FaultAuth: 401,
	agent.FaultQuota: 429, agent.FaultBadRequest: 400, agent.FaultContext: 400,
}

func tinJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b) + "\n"
}

func breakTin(kind agent.FaultKind, message string) string {
	name := map[agent.FaultKind]string{
		agent.FaultQuota: "no_money", agent.FaultContext: "too_long", agent.FaultOverload: "busy",
		agent.FaultRateLimit: "wait", agent.FaultAuth: "who_are_you", agent.FaultBadRequest: "nonsense",
	}[kind]
	return tinJSON(tinLine{Error: &tinError{name, message}})
}

func replyTin(s conformance.ProviderResponse) (pieces []string) {
	for _, b := range s.Blocks {
		if b.Type == agent.PartToolCall {
			pieces = append(pieces, tinJSON(tinLine{Call: &tinUse{ID: b.ID, Tool: b.Tool}}))
		}
		for _, p := range b.Pieces {
			if b.Type == agent.PartToolCall {
				pieces = append(pieces, tinJSON(tinLine{Piece: p}))
			} else {
				pieces = append(pieces, tinJSON(tinLine{Text: p}))
			}
		}
	}
	why := map[model.Finish]string{model.FinishLength: "longest", model.FinishContentFilter: "refused"}[s.Finish]
	u := s.Usage
	return append(pieces, tinJSON(tinLine{End: &tinEnd{Why: why, Read: u.Input - u.CacheRead, Cached: u.CacheRead, Wrote: u.Output}}))
}

func readTin(r *http.Request, body []byte) (conformance.ProviderRequest, error) {
	var in tinRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return conformance.ProviderRequest{}, err
	}
	asked := conformance.ProviderRequest{Model: in.Model, Instructions: in.System, MaxOutputTokens: in.Longest, Temperature: in.Temperature, Key: r.Header.Get("Authorization")}
	for _, t := range in.Tools {
		asked.Tools = append(asked.Tools, agent.ToolSpec{Name: t.Name, Description: t.Description, Input: t.Schema})
	}
	for _, turn := range in.Turns {
		msg := agent.Message{Role: agent.RoleUser}
		if turn.By == "model" {
			msg.Role = agent.RoleAssistant
		}
		part := agent.Part{Type: agent.PartText, Text: turn.Text}
		if c := turn.Call; c != nil {
			part = agent.Part{Type: agent.PartToolCall, Call: &agent.ToolCall{ID: c.ID, Tool: c.Tool, Arguments: json.RawMessage(c.Arguments)}}
		}
		if c := turn.Result; c != nil {
			status := agent.CallOK
			if c.Failed {
				status = agent.CallFailed
			}
			part = agent.Part{Type: agent.PartToolResult, Result: &agent.ToolResult{Call: c.ID, Text: c.Text, Status: status}}
		}
		msg.Parts = []agent.Part{part}
		asked.Messages = append(asked.Messages, msg)
	}
	return asked, nil
}

// Tin's protocol can't express everything.
var tinOptions = &conformance.ModelOptions{Provider: "tin", Unsupported: conformance.Unsupported{Thinking: true, Signatures: true, CacheWrite: true, Reasoning: true}}

// A test of an adapter is one call. Each of its subtests names a rule. A failure says what is
// wrong and why it matters.
func ExampleModel() {
	TestTin := func(t *testing.T) { conformance.Model(t, tinProvider, tinOptions) }
	fmt.Printf("%T\n", TestTin)
	// Output: func(*testing.T)
}
