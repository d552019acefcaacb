// Package e2e has our tests on real Temporal servers, with real processes and the plain
// temporal command. It is a module of its own, so importing fermata does not need a
// server.
package e2e
