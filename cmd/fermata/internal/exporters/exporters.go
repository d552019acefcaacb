package exporters

import (
	"cmp"
	"context"
	"io"
	"os"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdoutmetric"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/fermata-agents/fermata/agent"
)

// exportKind is a kind of telemetry, by its name in OpenTelemetry's environment
// variables.
type exportKind string

const (
	traces  exportKind = "TRACES"
	metrics exportKind = "METRICS"
)

// How telemetry is exported.
const (
	exporterNone    = "none"
	exporterConsole = "console"
	exporterGRPC    = "grpc"
	exporterHTTP    = "http/protobuf"
)

// exporter returns how the environment says to export it.
func (e exportKind) exporter() (how string, err error) {
	chosen := os.Getenv("OTEL_" + string(e) + "_EXPORTER")
	named := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_"+string(e)+"_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT")) != ""
	switch {
	// Nothing is sent by default, unlike in OpenTelemetry; an endpoint alone turns OTLP on.
	case os.Getenv("OTEL_SDK_DISABLED") == "true", chosen == "" && !named, chosen == exporterNone:
		return exporterNone, nil
	case chosen == exporterConsole:
		return exporterConsole, nil
	case chosen != "" && chosen != "otlp":
		return "", agent.Errorf(agent.CodeInvalidInput, "OTEL_%s_EXPORTER is %q; otlp, console and none are known: a collector can forward to others", e, chosen)
	}
	protocol := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_"+string(e)+"_PROTOCOL"), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"), exporterHTTP)
	if protocol != exporterHTTP && protocol != exporterGRPC {
		return "", agent.Errorf(agent.CodeInvalidInput, "OTEL_EXPORTER_OTLP_PROTOCOL is %q; %s and %s are known", protocol, exporterHTTP, exporterGRPC)
	}
	return protocol, nil
}

// spanExporter returns what exports spans; nil if nothing does. console is where a person
// sees them.
func spanExporter(ctx context.Context, console io.Writer) (sdktrace.SpanExporter, error) {
	switch how, err := traces.exporter(); how {
	case exporterConsole:
		return stdouttrace.New(stdouttrace.WithWriter(console))
	case exporterGRPC:
		return otlptracegrpc.New(ctx)
	case exporterHTTP:
		return otlptracehttp.New(ctx)
	default:
		return nil, err
	}
}

// metricReader returns what exports metrics, every minute or as
// OTEL_METRIC_EXPORT_INTERVAL says; nil if nothing does.
func metricReader(ctx context.Context, console io.Writer) (sdkmetric.Reader, error) {
	var to sdkmetric.Exporter
	how, err := metrics.exporter()
	switch how {
	case exporterConsole:
		to, err = stdoutmetric.New(stdoutmetric.WithWriter(console))
	case exporterGRPC:
		to, err = otlpmetricgrpc.New(ctx)
	case exporterHTTP:
		to, err = otlpmetrichttp.New(ctx)
	}
	if err != nil || to == nil {
		return nil, err
	}
	return sdkmetric.NewPeriodicReader(to), nil
}
