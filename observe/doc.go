// Package observe is what traces and metrics are made from: an [Observer] hears what
// the runs of a worker do, and is put around their model and tool calls. The module
// telemetry has the one for OpenTelemetry.
package observe
