// Package pgtest starts a PostgreSQL server for tests. It needs the server's
// programs on the machine; nothing is fetched.
package pgtest
