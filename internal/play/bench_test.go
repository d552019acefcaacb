package play

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// BenchmarkAgain runs a function again on the results of 1,000 steps, of 1 kB of JSON each.
func BenchmarkAgain(b *testing.B) {
	var results []Result
	for i := range 1000 {
		path := "a"
		if i > 0 {
			path = fmt.Sprintf("a#%d", i+1)
		}
		text := fmt.Sprintf(`{"n":%d,"text":%q}`, i, strings.Repeat("It is fine. ", 80))
		results = append(results, Result{Path: path, Status: agent.CallOK, Text: text, At: time.Unix(int64(i), 0), Arguments: json.RawMessage(`{"file":"a.go"}`)})
	}
	f := func(c *Context, _ []byte) (Done, error) {
		for i := range 1000 {
			r, err := c.Do("a", Step{FlowStep: wire.FlowStep{ToolCall: agent.ToolCall{Tool: "a", Arguments: json.RawMessage(`{"file":"a.go"}`)}}})
			if err != nil {
				return Done{}, err
			}
			var out struct {
				N    int    `json:"n"`
				Text string `json:"text"`
			}
			if err := json.Unmarshal([]byte(r.Text), &out); err != nil || out.N != i {
				return Done{}, fmt.Errorf("step %d has %d: %w", i, out.N, err)
			}
		}
		return Done{Text: "done"}, nil
	}
	for b.Loop() {
		p := Start(f, nil, time.Time{})
		if err := p.Run(context.Background(), time.Minute, results); err != nil {
			b.Fatal(err)
		}
		if d, ended, err := p.Done(); !ended || err != nil || d.Text != "done" {
			b.Fatal(d, ended, err)
		}
		p.Close()
	}
}
