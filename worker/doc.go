// Package worker assembles a worker process. It registers Fermata's workflows and
// activities with Temporal. A worker gets agents, tools, models and a store, checks that
// they fit together, and runs what its task queue brings. Before a deploy, [Preflight]
// says which runs a build could not continue.
package worker
