// Package observe has the interfaces behind traces, metrics and audits: an [Observer]
// receives what a worker's runs do, at its own pace, and an [Auditor] records it before it
// takes effect. The module telemetry has an observer for OpenTelemetry.
package observe
