// Beside is a worker of one's own on the server of fermata dev. It has an agent with a Go tool,
// on a task queue of its own, and runs until Ctrl-C.
package main
