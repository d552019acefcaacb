// Package devserver runs a whole Temporal server inside your process. Its database is a
// SQLite file or memory, and it listens on loopback only. Use it to run agents on a
// laptop with nothing installed, and in tests that need a real server. Begin with [Start]
// or, in tests, with [ForTest]:
//
//	s, err := devserver.Start(ctx, nil)
//	if err != nil {
//		return err
//	}
//	defer s.Stop()
//	c, err := s.Dial(ctx, client.Options{})
//
// A server with a data directory keeps its data, also after its process was killed. It
// holds a lock on the directory while it runs. Another process that starts a server on
// the same directory finds the first one and uses it ([Server.Shared]). So two programs
// on one machine see the same runs and never write the same file.
//
// Do not use it for production. It has one shard, one database connection, no replicas,
// no authentication and no TLS. It trusts everybody who can open a loopback connection on
// this machine. Limits that protect a cluster from its users are removed, and its
// database is never migrated. It is tuned for short calls, not for many of them. For
// anything that has to outlive a laptop, run a Temporal cluster or Temporal Cloud.
//
// After an upgrade: the database's schema version is part of the file's name. So a server
// with a newer schema begins with an empty file, and the older file stays.
//
// After [Server.Stop] nothing listens any more, and no lock or file is open. Some of the
// server's own goroutines end later or never: see [Server.Stop].
package devserver
