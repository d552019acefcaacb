// Package exporters sends traces and metrics to where OpenTelemetry's environment
// variables say.
package exporters
