// Bench measures what the design rests its promises on, beside programs that do
// without us, on a real Temporal server and with worker processes of their own.
// See README.md for how to run it; docs/performance.md has figures.
package main
