package main

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortraces "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/proto"
)

// collector takes what is exported to it over HTTP.
type collector struct {
	*httptest.Server
	mu       sync.Mutex
	spans    map[string]int // how many of a name
	metrics  map[string]bool
	services map[string]bool
	faults   []error
}

func collect(t *testing.T) *collector {
	c := &collector{spans: map[string]int{}, metrics: map[string]bool{}, services: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/traces", func(_ http.ResponseWriter, r *http.Request) {
		var got collectortraces.ExportTraceServiceRequest
		c.read(r, &got, func() {
			for _, rs := range got.GetResourceSpans() {
				c.service(rs.GetResource().GetAttributes())
				for _, ss := range rs.GetScopeSpans() {
					for _, s := range ss.GetSpans() {
						c.spans[s.GetName()]++
					}
				}
			}
		})
	})
	mux.HandleFunc("POST /v1/metrics", func(_ http.ResponseWriter, r *http.Request) {
		var got collectormetrics.ExportMetricsServiceRequest
		c.read(r, &got, func() {
			for _, rm := range got.GetResourceMetrics() {
				c.service(rm.GetResource().GetAttributes())
				for _, sm := range rm.GetScopeMetrics() {
					for _, m := range sm.GetMetrics() {
						c.metrics[m.GetName()] = true
					}
				}
			}
		})
	})
	c.Server = httptest.NewServer(mux)
	t.Cleanup(c.Close)
	return c
}

func (c *collector) service(attributes []*commonpb.KeyValue) {
	for _, a := range attributes {
		if a.GetKey() == "service.name" {
			c.services[a.GetValue().GetStringValue()] = true
		}
	}
}

func (c *collector) read(r *http.Request, got proto.Message, then func()) {
	body, err := io.Reader(r.Body), error(nil)
	if r.Header.Get("Content-Encoding") == "gzip" {
		body, err = gzip.NewReader(r.Body)
	}
	var raw []byte
	if err == nil {
		raw, err = io.ReadAll(body)
	}
	if err == nil {
		err = proto.Unmarshal(raw, got)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.faults = append(c.faults, err)
		return
	}
	then()
}

// Where the environment names a collector it has the spans and metrics of a run when the
// command has ended, with those of Temporal's SDK and none of the embedded server.
func TestRunsAreTraced(t *testing.T) {
	t.Parallel()
	c := collect(t)
	b := setup(t)
	project(b)
	b.env = append(b.env, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL, "OTEL_TRACES_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf")
	r := b.run("run", "reader", "What do the notes say?")
	require.Zero(t, r.exit, r.err)
	c.mu.Lock()
	defer c.mu.Unlock()
	require.Empty(t, c.faults)
	require.Equal(t, map[string]int{
		"invoke_agent reader": 1, "turn": 2, "chat script:reader.yaml": 2, "execute_tool fs_read": 2,
	}, c.spans, "a tool that there is not, is not executed")
	for _, name := range []string{"gen_ai.client.operation.duration", "gen_ai.client.token.usage", "fermata.run.segments", "fermata.run.ends", "fermata.turns", "fermata.cost", "fermata.disk.free", "temporal_request"} {
		require.Contains(t, c.metrics, name)
	}
	require.Equal(t, map[string]bool{"fermata": true}, c.services)
}

// A collector that takes nothing keeps no command from its end.
func TestNobodyWaitsLongForACollector(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	deaf := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(func() { close(release); deaf.Close() })
	b := setup(t)
	project(b)
	b.env = append(b.env, "OTEL_EXPORTER_OTLP_ENDPOINT="+deaf.URL, "OTEL_EXPORTER_OTLP_TIMEOUT=3600000", "OTEL_BSP_EXPORT_TIMEOUT=3600000")
	r := b.run("run", "reader", "What do the notes say?")
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.out, "completed · 2 turns")
	require.Contains(t, r.err, "fermata: traces or metrics were lost: ")
}

// What is wrong in the environment is told before anything is started, and the embedded
// server does not mind what is meant for us.
func TestExportersAreChosen(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project(b)
	plain := b.env
	for _, wrong := range []string{"OTEL_TRACES_EXPORTER=zipkin", "OTEL_METRICS_EXPORTER=prometheus"} {
		b.env = append(plain[:len(plain):len(plain)], wrong)
		r := b.run("run", "reader", "x")
		require.Equal(t, 2, r.exit, r.err)
		require.Contains(t, r.err, "otlp, console and none are known")
		require.NotContains(t, r.err, "temporal ", "no server was started")
	}
	b.env = append(plain[:len(plain):len(plain)], "OTEL_TRACES_EXPORTER=console", "FERMATA_TRACE_SUSPENSION_TEXTS=yes")
	guessed := b.run("run", "reader", "x")
	require.Equal(t, 2, guessed.exit, guessed.err)
	require.Contains(t, guessed.err, "say true or false")
	b.env = append(plain[:len(plain):len(plain)], "OTEL_TRACES_EXPORTER=console")
	r := b.run("run", "reader", "What do the notes say?")
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.err, `"Name":"invoke_agent reader"`)
	require.NotContains(t, r.err, "till")
	b.env = append(b.env, "OTEL_SDK_DISABLED=true")
	r = b.run("run", "reader", "What do the notes say?")
	require.Zero(t, r.exit, r.err)
	require.NotContains(t, r.err, "invoke_agent")
}

// What a suspension asks is in spans only where the environment says so.
func TestTextsOfSuspensionsAreOptIn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.write("fermata.yaml", "agents:\n  asker: {model: \"script:s.yaml\", tools: [ask_user]}\n")
	b.write("s.yaml", "replies:\n  - {calls: [{tool: ask_user, arguments: {question: \"Which till?\"}}]}\n")
	b.env = append(b.env, "OTEL_TRACES_EXPORTER=console")
	r := b.run("run", "asker", "go", "--json")
	require.Equal(t, 3, r.exit, r.err)
	require.Contains(t, r.err, `"Name":"suspend input_required"`)
	require.NotContains(t, r.err, "Which till?")
	b.env = append(b.env, "FERMATA_TRACE_SUSPENSION_TEXTS=true")
	r = b.run("run", "asker", "go", "--json")
	require.Equal(t, 3, r.exit, r.err)
	require.Contains(t, r.err, "Which till?")
}
