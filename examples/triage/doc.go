// Triage answers tickets with a lead and two sub-agents. A refund needs an approval, which
// the client asks for at its terminal, in another process than the worker's.
//
//	go run ./examples/triage                      # the worker
//	go run ./examples/triage "order 7 is broken"  # the client
package main
