// Package devserver is Temporal inside one's own process: the whole server, its
// database a SQLite file or memory, listening on loopback only. It is what lets
// an agent run on a laptop with nothing installed, and what every test that
// wants a real server starts.
//
//	s, err := devserver.Start(ctx, nil)
//	if err != nil {
//		return err
//	}
//	defer s.Stop()
//	c, err := s.Dial(ctx, client.Options{})
//
// A server with a data directory keeps what it was told, also after its process
// was killed. It holds a lock on the directory as long as it lives; another
// process that starts a server on the same directory finds the first one and
// uses it ([Server.Shared]), so that two programs on one machine see the same
// runs and never write the same file.
//
// It is not for production. It has one shard, one database connection, no
// replicas, no authentication and no TLS; it trusts everybody who can open a
// connection to loopback on this machine; limits that protect a cluster from its
// users are removed; its database is never migrated. It is tuned for the time
// that one call takes, not for how many it can bear. For anything that has to
// outlive a laptop, run a Temporal cluster or Temporal Cloud.
//
// What an upgrade does: the database's schema version is part of its file's
// name, so a server with a newer schema begins with an empty file and leaves the
// older one where it is.
//
// What stays behind after [Server.Stop]: nothing that listens, no lock and no
// open file. Some of the server's own goroutines end later or never; see
// [Server.Stop].
package devserver
