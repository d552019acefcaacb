package workflows_test

import (
	"bytes"
	"context"
	"runtime"
	"sync"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// results is a data converter that counts the results of steps which the workflow has
// read and something still refers to.
type results struct {
	converter.DataConverter
	mu   sync.Mutex
	seen []weak.Pointer[commonpb.Payloads]
}

// FromPayloads notes what holds a step's result: a reply has how it finished, a tool's result a status.
func (r *results) FromPayloads(payloads *commonpb.Payloads, values ...any) error {
	for i, v := range values {
		data := payloads.GetPayloads()[i].GetData()
		if _, raw := v.(*converter.RawValue); raw && (bytes.Contains(data, []byte(`"finish":`)) || bytes.Contains(data, []byte(`"status":`))) {
			r.mu.Lock()
			r.seen = append(r.seen, weak.Make(payloads))
			r.mu.Unlock()
		}
	}
	return r.DataConverter.FromPayloads(payloads, values...)
}

// count says how many results were read, and how many of them are still referred to.
func (r *results) count() (read, held int) {
	runtime.GC()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.seen {
		if p.Value() != nil {
			held++
		}
	}
	return len(r.seen), held
}

// An execution refers to no result of a step that it has taken, however many turns it has.
func TestALongExecutionKeepsNoResult(t *testing.T) {
	const turns = 1000
	r := &results{DataConverter: converter.GetDefaultDataConverter()}
	var read, held int
	add := tool.New("add", "", func(_ context.Context, _ *tool.Call, in struct{ N int }) (int, error) {
		if in.N == turns-1 {
			read, held = r.count()
		}
		return in.N, nil
	}, nil)
	replies := make([]testsuite.Reply, 0, turns)
	for n := range turns - 1 {
		replies = append(replies, testsuite.Reply{Calls: []testsuite.Call{{Tool: "add", Arguments: map[string]any{"N": n + 1}}}})
	}
	b := setup(t, agent.Definition{Limits: agent.Limits{Turns: turns}}, testsuite.NewScript(append(replies, testsuite.Reply{Text: "done"})...), add)
	b.SetDataConverter(r)
	o := b.run(t, "go")
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.Equal(t, 2*turns-3, read, "each reply and each result was read")
	require.LessOrEqual(t, held, 4, "what is in flight, and no more")
}
