package conformance_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite/conformance"
	"github.com/fermata-agents/fermata/tool"
)

func newBank() *bank { return &bank{paid: map[string]int{}} }

const aPayment = `{"to":"Ana","cents":500}`

func TestPay(t *testing.T) {
	b := newBank()
	conformance.Tool(t, payTool(b), &conformance.ToolOptions{Arguments: aPayment, Effects: b.payments, Secrets: []string{"sk-bank-123"}})
}

func TestShop(t *testing.T) {
	conformance.Source(t, catalog{[]tool.Tool{payTool(newBank())}}, &conformance.SourceOptions{Tools: map[string]conformance.ToolOptions{
		"shop__pay": {Arguments: aPayment},
	}})
}

// A tool that waits is one that ends with its context.
func TestWaiting(t *testing.T) {
	type waiting struct {
		For time.Duration `json:"for"`
	}
	wait := tool.New("wait", "Waits.", func(ctx context.Context, c *tool.Call, in waiting) (string, error) {
		select {
		case <-ctx.Done():
			return "waited a while", nil
		case <-time.After(min(in.For, time.Hour)):
			return "waited", nil
		}
	}, nil)
	conformance.Tool(t, wait, &conformance.ToolOptions{Arguments: `{"for":0}`, Slow: `{"for":3600000000000}`})
}

// badPay is a payment that something is wrong with.
func badPay(o *tool.Options, do func(ctx context.Context, c *tool.Call, in Payment) (string, error)) tool.Tool {
	return tool.New("pay", "Pays somebody.", do, o)
}

func TestFaultsOfToolsAreFound(t *testing.T) {
	var effects atomic.Int64
	count := func() int { return int(effects.Load()) }
	forever := make(chan struct{})
	t.Cleanup(func() { close(forever) })
	again := &tool.Options{Attempts: 3}
	var seen sync.Map
	for _, c := range []struct {
		name, found string
		tool        tool.Tool
	}{
		{"no description", "a model can understand it", tool.New("pay", " ", func(context.Context, *tool.Call, Payment) (string, error) { return "", nil }, nil)},
		{"a secret argument that is misspelt", "a model can understand it", badPay(&tool.Options{Secrets: []string{"amount"}}, func(context.Context, *tool.Call, Payment) (string, error) { return "", nil })},
		{"an effect for every attempt", "a call that is made again has its effect once", badPay(again, func(context.Context, *tool.Call, Payment) (string, error) {
			effects.Add(1)
			return "paid", nil
		})},
		{"an effect for the first call only", "a call that is made again has its effect once", badPay(again, func(_ context.Context, c *tool.Call, _ Payment) (string, error) {
			if c.Key == "r/t2.1" {
				effects.CompareAndSwap(0, 1)
			}
			return "paid", nil
		})},
		{"a reader that writes", "a tool that only reads has no effect", badPay(&tool.Options{ReadOnly: true}, func(context.Context, *tool.Call, Payment) (string, error) {
			effects.Add(1)
			return "paid", nil
		})},
		{"an effect of a later attempt", "a call that is made again has its effect once", badPay(again, func(_ context.Context, c *tool.Call, _ Payment) (string, error) {
			if _, again := seen.LoadOrStore(c.Key, true); !again || c.Attempt > 1 {
				effects.Add(1)
			}
			return "paid", nil
		})},
		{"an error of a later attempt", "a call that is made again has its effect once", badPay(again, func(_ context.Context, c *tool.Call, _ Payment) (string, error) {
			if c.Attempt > 1 {
				return "", errors.New("it was paid before")
			}
			if _, again := seen.LoadOrStore(c.Key, true); !again {
				effects.Add(1)
			}
			return "paid", nil
		})},
		{"an effect of what is refused", "strange arguments do no harm", badPay(nil, func(_ context.Context, _ *tool.Call, in Payment) (string, error) {
			effects.Add(1)
			if in.Cents <= 0 {
				return "", tool.Refuse("no cents")
			}
			return "paid", nil
		})},
		{"an effect that nobody waits for", "the end of the context ends a call", badPay(nil, func(context.Context, *tool.Call, Payment) (string, error) {
			effects.Add(1)
			return "paid", nil
		})},
		{"a secret in the progress", "a call has a result that a model can read", badPay(nil, func(_ context.Context, c *tool.Call, _ Payment) (string, error) {
			c.Progress("asking the bank with %s", "sk-bank-123")
			return "paid", nil
		})},
		{"a panic", "strange arguments do no harm", badPay(nil, func(_ context.Context, _ *tool.Call, in Payment) (string, error) {
			return in.To[:1], nil
		})},
		{"a context that is not heard", "the end of the context ends a call", badPay(nil, func(_ context.Context, _ *tool.Call, in Payment) (string, error) {
			if in.Cents == 1 {
				<-forever
			}
			return "paid", nil
		})},
		{"a secret in an error", "strange arguments do no harm", badPay(nil, func(_ context.Context, _ *tool.Call, in Payment) (string, error) {
			if in.Cents < 0 {
				return "", errors.New("the bank refused sk-bank-123")
			}
			return "paid", nil
		})},
		{"a result without an end", "a call has a result that a model can read", badPay(nil, func(context.Context, *tool.Call, Payment) (string, error) {
			return strings.Repeat("paid ", 100_000), nil
		})},
		{"a result that is not UTF-8", "a call has a result that a model can read", badPay(nil, func(context.Context, *tool.Call, Payment) (string, error) { return "\xff", nil })},
		{"arguments that are changed", "a call has a result that a model can read", badPay(nil, func(_ context.Context, c *tool.Call, _ Payment) (string, error) {
			clear(c.Arguments)
			return "paid", nil
		})},
	} {
		t.Run(c.name, func(t *testing.T) {
			effects.Store(0)
			found := conformance.ToolFault(t, c.found, c.tool, &conformance.ToolOptions{
				Arguments: aPayment, Slow: `{"to":"Ana","cents":1}`, Effects: count, Secrets: []string{"sk-bank-123"},
			})
			require.NotEmpty(t, found)
			t.Log(found)
		})
	}
}

// badShop is a source that something is wrong with.
type badShop struct {
	catalog
	list func([]agent.ToolSpec) []agent.ToolSpec
	deaf bool // to contexts
	call func() (string, error)
}

func (s *badShop) List(ctx context.Context) ([]agent.ToolSpec, error) {
	if s.deaf {
		ctx = context.WithoutCancel(ctx)
	}
	specs, err := s.catalog.List(ctx)
	if s.list != nil {
		specs = s.list(specs)
	}
	return specs, err
}

func (s *badShop) Call(ctx context.Context, c *tool.Call) (string, error) {
	if s.call != nil {
		return s.call()
	}
	return s.catalog.Call(ctx, c)
}

func TestFaultsOfSourcesAreFound(t *testing.T) {
	whole := catalog{[]tool.Tool{payTool(newBank()), tool.New("look", "Looks.", func(context.Context, *tool.Call, struct{}) (string, error) { return "", nil }, nil)}}
	turn := false
	for name, c := range map[string]struct {
		found string
		shop  badShop
	}{
		"names without the source's":  {"the tools of a source have its name", badShop{list: func([]agent.ToolSpec) []agent.ToolSpec { return []agent.ToolSpec{payTool(newBank()).Spec()} }}},
		"a tool that is listed twice": {"the tools of a source have its name", badShop{list: func(s []agent.ToolSpec) []agent.ToolSpec { return append(s, s...) }}},
		"a schema that is none": {"the tools of a source have its name", badShop{list: func(s []agent.ToolSpec) []agent.ToolSpec {
			for i := range s {
				s[i].Input = []byte(`{"type":"objekt"}`)
			}
			return s
		}}},
		"another order each time": {"a list is the same as long as the tools are", badShop{list: func(s []agent.ToolSpec) []agent.ToolSpec {
			if turn = !turn; turn {
				slices.Reverse(s)
			}
			return s
		}}},
		"every tool is there":      {"a tool that is not there is an error", badShop{call: func() (string, error) { return "done", nil }}},
		"a list that nobody stops": {"the end of the context ends a list", badShop{deaf: true}},
	} {
		t.Run(name, func(t *testing.T) {
			c.shop.catalog = whole
			found := conformance.SourceFault(t, c.found, &c.shop)
			require.NotEmpty(t, found)
			t.Log(found)
		})
	}
}
