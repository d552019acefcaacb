// Bench measures the promises of the design, beside programs without Fermata, on a real
// Temporal server and with worker processes. See README.md for how to run it;
// docs/performance.md has figures.
package main
