// Package client is how a Go program outside speaks to runs: it starts them,
// waits for them, and reads what was said. It needs nothing but a Temporal
// client, and says nothing that the plain temporal command could not.
package client
