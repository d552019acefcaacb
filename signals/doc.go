// Package signals is the wire: everything that one may say to a run and ask of
// it over Temporal, by name and payload, and how it is checked (docs/wire.md).
// A workflow answers to these names and a client, the plain temporal command
// included, speaks them; there is no other door.
package signals
