// Package observe has the interfaces behind traces, metrics and audits: an [Observer]
// sees what a worker's runs do, and an [Auditor] records it. The module telemetry has an
// observer for OpenTelemetry.
package observe
