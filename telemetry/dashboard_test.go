package telemetry_test

import (
	"context"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/observe"
)

// inPrometheus are the names that Prometheus has for all that is counted: of metrics, and
// of their attributes.
func inPrometheus(t *testing.T, p *process) (names, labels []string) {
	t.Helper()
	var data metricdata.ResourceMetrics
	require.NoError(t, p.reader.Collect(t.Context(), &data))
	flat := func(name string) string { return strings.ReplaceAll(name, ".", "_") }
	label := func(set attribute.Set) {
		for _, a := range set.ToSlice() {
			labels = append(labels, flat(string(a.Key)))
		}
	}
	histogram := func(name string) {
		for _, part := range []string{"_bucket", "_sum", "_count"} {
			names = append(names, name+part)
		}
	}
	for _, m := range data.ScopeMetrics[0].Metrics {
		name := flat(m.Name)
		if m.Unit == "s" {
			name += "_seconds"
		}
		switch d := m.Data.(type) {
		case metricdata.Sum[int64]:
			names = append(names, name+"_total")
			for _, x := range d.DataPoints {
				label(x.Attributes)
			}
		case metricdata.Sum[float64]:
			names = append(names, name+"_total")
			for _, x := range d.DataPoints {
				label(x.Attributes)
			}
		case metricdata.Histogram[int64]:
			histogram(name)
			for _, x := range d.DataPoints {
				label(x.Attributes)
			}
		case metricdata.Histogram[float64]:
			histogram(name)
			for _, x := range d.DataPoints {
				label(x.Attributes)
			}
		}
	}
	return names, labels
}

// The dashboard asks for what there is: every metric and every label is one that is
// counted, and all that is counted has a panel.
func TestTheDashboard(t *testing.T) {
	p := begin(t)
	l := started(p, "")
	l.tell(p, agent.Event{Type: agent.EventTurnStarted})
	l.suspend(p)
	l.answer(p)
	l.end(p, agent.EventRunFailed, agent.Errorf(agent.CodeProviderError, "%s", secret))
	require.NoError(t, p.ask(t.Context(), reply(agent.Usage{Input: 1, Output: 1})))
	_, over := p.Tool(t.Context(), call("pay"), where)
	over(agent.CallFailed)
	p.Gap(t.Context(), observe.Gap{Session: "trip-42", Run: "01a1", From: 8, To: 9, Events: 2})
	require.Equal(t, map[string]float64{"": 2}, p.sums(t)["fermata.observer.lost"])
	names, labels := inPrometheus(t, p)

	raw, err := os.ReadFile("../docs/grafana/fermata.json")
	require.NoError(t, err)
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(raw, &board))
	word := regexp.MustCompile(`\b(fermata|gen_ai|error)_[a-z_]+\b`)
	asked := map[string]bool{}
	for _, panel := range board.Panels {
		require.NotEmpty(t, panel.Targets, panel.Title)
		for _, target := range panel.Targets {
			words := word.FindAllString(target.Expr, -1)
			require.True(t, slices.ContainsFunc(words, func(w string) bool { return slices.Contains(names, w) }), "%s: %s", panel.Title, target.Expr)
			for _, w := range words {
				require.Contains(t, append(names, labels...), w, panel.Title)
				asked[w] = true
			}
		}
	}
	for _, name := range names {
		stem := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		require.True(t, asked[name] || asked[stem+"_bucket"] || asked[stem+"_sum"], "%s has no panel", name)
	}
	page, err := os.ReadFile("../docs/observability.md")
	require.NoError(t, err)
	for name := range p.sums(t) {
		require.Contains(t, string(page), "`"+name+"`")
	}
}

// reply is a model that answers with so much usage.
func reply(u agent.Usage) answers {
	return func(context.Context) (*model.Reply, error) {
		return &model.Reply{Finish: model.FinishStop, Usage: u}, nil
	}
}
