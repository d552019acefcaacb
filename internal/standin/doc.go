// Package standin has what the tests of adapters share: a server that stands in for a
// provider. It answers with what a test gives it, and keeps what it received.
// conformance.Model checks what every adapter must do; here is what tests of one protocol
// need.
package standin
