// Package pgtest starts a PostgreSQL server for tests: see [Start]. It needs PostgreSQL's
// programs on the machine and downloads nothing.
package pgtest
