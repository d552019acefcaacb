// Package standin is what the tests of adapters share: a server that answers for
// a provider with what a test gives it, and keeps what it was sent. What every
// adapter must do is checked by conformance.Model; here is what the tests of one
// protocol's own ways need.
package standin
