// Triage answers tickets with a lead and two sub-agents. A refund needs an approval, which
// the client asks for at its terminal, in another process than the worker's.
//
//	go run ./examples/triage                      # the worker
//	go run ./examples/triage "order 7 is broken"  # the client
//
// Both need a Temporal server on 127.0.0.1:7233 that `fermata setup` has prepared. The worker
// needs a key in ANTHROPIC_API_KEY, and no other worker on the task queue fermata.
package main
