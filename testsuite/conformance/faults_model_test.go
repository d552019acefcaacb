package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite/conformance"
)

// generate is what a planted fault does instead of an adapter.
type generate func(ctx context.Context, m model.Model, req *model.Request, emit func(model.Delta)) (*model.Reply, error)

type bent struct {
	model.Model
	generate
}

func (b bent) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
	return b.generate(ctx, b.Model, req, emit)
}

// replying changes replies.
func replying(change func(*model.Reply)) generate {
	return func(ctx context.Context, m model.Model, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
		reply, err := m.Generate(ctx, req, emit)
		if err == nil {
			change(reply)
		}
		return reply, err
	}
}

// asking changes what is asked.
func asking(change func(*model.Request)) generate {
	return func(ctx context.Context, m model.Model, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
		other := *req
		other.Messages = slices.Clone(req.Messages)
		change(&other)
		return m.Generate(ctx, &other, emit)
	}
}

// failing changes failures.
func failing(change func(*agent.Error)) generate {
	return func(ctx context.Context, m model.Model, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
		reply, err := m.Generate(ctx, req, emit)
		if fault, ok := errors.AsType[*agent.Error](err); ok {
			change(fault)
		}
		return reply, err
	}
}

// eachCall changes the calls of replies.
func eachCall(change func(*agent.ToolCall)) generate {
	return replying(func(r *model.Reply) {
		for _, p := range r.Parts {
			if p.Call != nil {
				change(p.Call)
			}
		}
	})
}

func isCall(p agent.Part) bool { return p.Type == agent.PartToolCall }

var modelFaults = []struct {
	name, found string
	fault       generate
}{
	{"a lost call", "no call is lost, doubled, moved or changed", replying(func(r *model.Reply) {
		if i := slices.IndexFunc(r.Parts, isCall); i >= 0 {
			r.Parts = slices.Delete(r.Parts, i, i+1)
		}
	})},
	{"a doubled call", "no call is lost, doubled, moved or changed", replying(func(r *model.Reply) {
		if i := slices.IndexFunc(r.Parts, isCall); i >= 0 {
			r.Parts = slices.Insert(r.Parts, i, r.Parts[i])
		}
	})},
	{"calls in another order", "no call is lost, doubled, moved or changed", replying(func(r *model.Reply) { slices.Reverse(r.Parts) })},
	{"arguments with rounded numbers", "no call is lost, doubled, moved or changed", eachCall(func(c *agent.ToolCall) {
		var v map[string]any
		if json.Unmarshal(c.Arguments, &v) == nil {
			c.Arguments, _ = json.Marshal(v)
		}
	})},
	{"broken arguments that are thrown away", "arguments that are not JSON are kept as they came", eachCall(func(c *agent.ToolCall) {
		if c.Malformed != "" {
			c.Malformed, c.Arguments = "", json.RawMessage("{}")
		}
	})},
	{"ids that are made up", "the provider's ids of calls are kept, also missing and repeated ones", eachCall(func(c *agent.ToolCall) {
		if c.ProviderID == "" {
			c.ProviderID = "call_1"
		}
	})},
	{"usage counted twice", "usage is counted once and in our terms", replying(func(r *model.Reply) { r.Usage = r.Usage.Add(r.Usage) })},
	{"usage without the cache", "usage is counted once and in our terms", replying(func(r *model.Reply) { r.Usage.Input -= r.Usage.CacheRead })},
	{"no usage", "usage is counted once and in our terms", replying(func(r *model.Reply) { r.Usage = agent.Usage{} })},
	{"always the same reason to stop", "the reason to stop is the provider's", replying(func(r *model.Reply) { r.Finish = model.FinishStop })},
	{"pieces that are kept until the end", "a reply is emitted while it arrives",
		func(ctx context.Context, m model.Model, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
			var kept []model.Delta
			reply, err := m.Generate(ctx, req, func(d model.Delta) { kept = append(kept, d) })
			for _, d := range kept {
				emit(d)
			}
			return reply, err
		}},
	{"only text is heard", "a ping is a sign of life",
		func(ctx context.Context, m model.Model, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
			return m.Generate(ctx, req, func(d model.Delta) {
				if d.Text != "" {
					emit(d)
				}
			})
		}},
	{"a piece that is emitted twice", "a reply is what the provider said",
		func(ctx context.Context, m model.Model, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
			return m.Generate(ctx, req, func(d model.Delta) { emit(d); emit(d) })
		}},
	{"results that are not sent", "a conversation is sent as it happened", asking(func(r *model.Request) {
		r.Messages = slices.DeleteFunc(r.Messages, func(m agent.Message) bool { return m.Role == agent.RoleTool })
	})},
	{"a role that is wrong", "a conversation is sent as it happened", asking(func(r *model.Request) {
		for i := range r.Messages {
			r.Messages[i].Role = agent.RoleUser
		}
	})},
	{"results in the place of others", "results go with their calls, whatever these are called", asking(func(r *model.Request) {
		if last := len(r.Messages) - 1; last > 0 && r.Messages[last].Role == agent.RoleTool {
			a, b := *r.Messages[last-1].Parts[0].Result, *r.Messages[last].Parts[0].Result
			a.Call, b.Call = b.Call, a.Call
			r.Messages[last-1].Parts = []agent.Part{{Type: agent.PartToolResult, Result: &a}}
			r.Messages[last].Parts = []agent.Part{{Type: agent.PartToolResult, Result: &b}}
		}
	})},
	{"a tool that is left out", "instructions, tools and bounds are sent", asking(func(r *model.Request) { r.Tools = r.Tools[:min(1, len(r.Tools))] })},
	{"a temperature of its own", "instructions, tools and bounds are sent", asking(func(r *model.Request) {
		one := 1.0
		r.Temperature = &one
	})},
	{"tools sorted by name", "instructions, tools and bounds are sent", asking(func(r *model.Request) {
		r.Tools = slices.SortedFunc(slices.Values(r.Tools), func(a, b agent.ToolSpec) int { return strings.Compare(a.Name, b.Name) })
	})},
	{"a temperature of 0 that is dropped", "instructions, tools and bounds are sent", asking(func(r *model.Request) {
		if r.Temperature != nil && *r.Temperature == 0 {
			r.Temperature = nil
		}
	})},
	{"malformed arguments that are sent as none", "a conversation is sent as it happened", asking(func(r *model.Request) {
		for i, m := range r.Messages {
			r.Messages[i].Parts = slices.Clone(m.Parts)
			for j, p := range m.Parts {
				if p.Call != nil {
					call := *p.Call
					call.Malformed, r.Messages[i].Parts[j].Call = "", &call
				}
			}
		}
	})},
	{"who said it is told", "private names are not sent", asking(func(r *model.Request) {
		r.Instructions = "You speak with " + r.Messages[0].By
	})},
	{"a request that is changed", "a conversation is sent as it happened",
		func(ctx context.Context, m model.Model, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
			req.Messages[0].Parts[0].Text += "\n"
			return m.Generate(ctx, req, emit)
		}},
	{"a wrong kind", "a failure has its kind", failing(func(e *agent.Error) { *e = *model.Fault(agent.FaultBadRequest, e.Provider.HTTP, 0, e.Message) })},
	{"a delay that is lost", "a failure has its kind", failing(func(e *agent.Error) { e.RetryAfter = 0 })},
	{"a failure that is said to be mended by waiting", "a failure has its kind", failing(func(e *agent.Error) { e.Retryable = true })},
	{"a failure that says nothing", "a failure has its kind", failing(func(e *agent.Error) { e.Message = "error" })},
	{"a failure that is no fault", "a gateway's error page gets its kind by status", failing(func(e *agent.Error) { e.Provider = nil })},
	{"half a reply", "a reply that is cut off is a failure that can be retried",
		func(ctx context.Context, m model.Model, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
			text := ""
			reply, err := m.Generate(ctx, req, func(d model.Delta) { text += d.Text; emit(d) })
			if err != nil && text != "" {
				return &model.Reply{Parts: []agent.Part{{Type: agent.PartText, Text: text}}, Finish: model.FinishStop}, nil
			}
			return reply, err
		}},
	{"a reply beside an error", "a failure has its kind",
		func(ctx context.Context, m model.Model, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
			reply, err := m.Generate(ctx, req, emit)
			if err != nil {
				reply = &model.Reply{}
			}
			return reply, err
		}},
	{"retries of its own", "a failure has its kind",
		func(ctx context.Context, m model.Model, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
			reply, err := m.Generate(ctx, req, emit)
			if err != nil {
				reply, err = m.Generate(ctx, req, emit)
			}
			return reply, err
		}},
	{"the provider is blamed", "the end of the context ends a call that waits",
		func(ctx context.Context, m model.Model, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
			reply, err := m.Generate(ctx, req, emit)
			if ctx.Err() != nil {
				err = model.Fault(agent.FaultTimeout, 0, 0, "it took too long")
			}
			return reply, err
		}},
	{"a request for nobody", "a cancelled call is not made",
		func(ctx context.Context, m model.Model, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
			if ctx.Err() != nil {
				_, _ = m.Generate(context.WithoutCancel(ctx), req, emit)
			}
			return m.Generate(ctx, req, emit)
		}},
	{"a request that goes on", "the end of the context ends a reply that arrives",
		func(ctx context.Context, m model.Model, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
			done := make(chan struct{})
			var reply *model.Reply
			var err error
			go func() {
				defer close(done)
				reply, err = m.Generate(context.WithoutCancel(ctx), req, func(d model.Delta) {
					if ctx.Err() == nil {
						emit(d)
					}
				})
			}()
			select {
			case <-done:
				return reply, err
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}},
	{"a panic", "no call is lost, doubled, moved or changed", eachCall(func(*agent.ToolCall) { panic("no such call") })},
}

// planted runs a part of the suite on an adapter of Tin with a fault, which it has
// to find, and on one without, which passes.
func planted(t *testing.T, part string, fault generate) {
	t.Helper()
	p := tinProvider
	p.New = func(url, key string) model.Model { return bent{newTin(url, key), fault} }
	found := conformance.ModelFault(t, part, p, tinOptions)
	require.NotEmpty(t, found)
	t.Log(found)
	require.Empty(t, conformance.ModelFault(t, part, tinProvider, tinOptions))
}

func TestFaultsOfModelsAreFound(t *testing.T) {
	for _, c := range modelFaults {
		t.Run(c.name, func(t *testing.T) {
			planted(t, c.found, c.fault)
		})
	}
}

// What an adapter keeps between calls, one call must not tell another.
func TestSharedStateIsFound(t *testing.T) {
	var mu sync.Mutex
	var kept *model.Reply
	planted(t, "many calls at once are kept apart", func(ctx context.Context, m model.Model, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
		reply, err := m.Generate(ctx, req, emit)
		mu.Lock()
		defer mu.Unlock()
		if kept == nil && len(req.Tools) > 0 {
			kept = reply
		}
		if kept != nil && err == nil {
			return kept, nil
		}
		return reply, err
	})
}

func TestGoroutinesThatAreLeftAreFound(t *testing.T) {
	forever := make(chan struct{})
	defer close(forever)
	planted(t, "cancelled calls leave nothing behind", func(ctx context.Context, m model.Model, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
		go func() { <-forever }()
		return m.Generate(ctx, req, emit)
	})
}

// A failure names what mends it: a word of the options, or the adapter's own mistake.
func TestFailuresOfModelsSayWhatToDo(t *testing.T) {
	deaf := func(ctx context.Context, m model.Model, req *model.Request, _ func(model.Delta)) (*model.Reply, error) {
		return m.Generate(ctx, req, func(model.Delta) {})
	}
	cut := eachCall(func(c *agent.ToolCall) {
		c.Malformed, c.Arguments = string(c.Arguments[:len(c.Arguments)-1]), nil
	})
	for _, c := range []struct {
		part, says string
		fault      generate
	}{
		{"a ping is a sign of life", "Unsupported.Streaming or Unsupported.Pings", deaf},
		{"thinking goes back to its own provider and to no other", "ModelOptions.Provider is empty", asking(func(*model.Request) {})},
		{"no call is lost, doubled, moved or changed", "a piece of them was lost or added", cut},
	} {
		p := tinProvider
		p.New = func(url, key string) model.Model { return bent{newTin(url, key), c.fault} }
		require.Contains(t, conformance.ModelFault(t, c.part, p, nil), c.says)
	}
	p := tinProvider
	p.Read = func(*http.Request, []byte) (conformance.ProviderRequest, error) {
		return conformance.ProviderRequest{}, errors.New("no turns")
	}
	require.Contains(t, conformance.ModelFault(t, "a reply is what the provider said", p, tinOptions), "no turns: either the adapter")
}

func TestAKeyInAnErrorIsFound(t *testing.T) {
	p := tinProvider
	p.New = func(url, key string) model.Model {
		return &tin{model.NewEndpoint("tin", url), model.HTTPClient(nil), url, key}
	}
	require.Contains(t, conformance.ModelFault(t, "a failure has its kind", p, tinOptions), "the key is in the error")
}
