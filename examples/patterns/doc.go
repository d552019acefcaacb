// Patterns has five ways to compose agents by a Go function: a chain, a route, a fan-out, an
// orchestrator with workers, and a writer with a judge.
package patterns
