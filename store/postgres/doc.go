// Package postgres keeps transcripts in PostgreSQL. It is a [store.Store] that every
// worker can reach, and that is backed up like any database. Begin with [Open]:
//
//	transcripts, err := postgres.Open(ctx, os.Getenv("FERMATA_STORE"), nil)
//	if err != nil {
//		return err
//	}
//	defer transcripts.Close()
//
// Three tables in their own schema hold the chunks, the heads and the store's identity.
// [Open] creates missing tables and migrates older ones. It takes a lock for that, so
// many workers may start at once. It refuses tables of a newer build.
//
// Each write is one statement, which succeeds completely or changes nothing, and which
// ends with its context. Nothing is retried here, because the runtime retries its
// activities. Connections are pooled: the URL sets how many (pool_max_conns) and their
// security (sslmode), as in libpq and pgxpool. No error contains the password.
package postgres
