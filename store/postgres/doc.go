// Package postgres keeps transcripts in PostgreSQL: a [store.Store] that every
// worker reaches, wherever it runs, and that is backed up as a database is.
//
//	transcripts, err := postgres.Open(ctx, os.Getenv("FERMATA_STORE"), nil)
//	if err != nil {
//		return err
//	}
//	defer transcripts.Close()
//
// Two tables in a schema of their own have the chunks and the heads. [Open] makes
// them where they are missing and brings older ones up to date, under a lock, so
// that many workers may start at once; what a newer build has made it refuses.
//
// Each call is one statement that succeeds as a whole or changes nothing, and ends
// with its context. What fails is not tried again here: the steps of a run are.
// The connections are pooled; the URL sets how many (pool_max_conns), and how they
// are secured (sslmode), as libpq and pgxpool know it. No error has the password.
package postgres
