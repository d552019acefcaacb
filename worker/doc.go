// Package worker puts a process together: it is the only place that registers
// anything with Temporal. A worker is given agents, tools, models and a store,
// checks that they fit together, and runs whatever waits on its task queue. Before
// a deploy, [Preflight] tells which runs a worker could not go on with.
package worker
