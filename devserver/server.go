package devserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
)

// A Server is a Temporal server in this process, or one in another process with the same
// data. The zero value is invalid: call [Start] or, in tests, [ForTest]. All methods are
// safe for concurrent use.
type Server struct {
	addr      string
	namespace string
	shared    bool

	stop sync.Once

	// What Stop takes down. All are nil for a shared server; claim is also nil for a
	// server in memory.
	instance *instance
	db       *database
	claim    *claim
	log      *serverLog
	owner    *ownerGuard // nil for a shared server
}

// Start starts a server and waits until it accepts workflows, which takes 0.15 s. o may be nil. The
// first start in a process takes longer, by 0.35 s for a program of 200 MB: the SDK hashes the
// program's file as the name of its build. Call worker.SetBinaryChecksum before to avoid that.
//
// If another process, or another part of this one, has a server on the same data
// directory, Start returns that one; see [Server.Shared]. If that one is starting or
// stopping, Start waits for it.
//
// The context limits only the start: its end does not stop the server. An error means
// that the options are wrong, the address is in use, the data directory can't be used, or
// its owner does not answer. Then nothing is left running.
func Start(ctx context.Context, o *Options) (*Server, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("devserver: %w", err)
	}
	// In memory there is nothing to share, so there is no lock.
	if o.inMemory() {
		return startOwn(ctx, o, nil)
	}
	dir, err := o.dataDir()
	if err != nil {
		return nil, err
	}
	for {
		mine, theirs, err := claimDir(ctx, dir)
		if err != nil {
			return nil, err
		}
		if mine != nil {
			return startOwn(ctx, o, mine)
		}
		s := &Server{addr: theirs.addr, namespace: o.namespace(), shared: true}
		err = prepare(ctx, s, o)
		if err == nil {
			return s, nil
		}
		// The server that was found has stopped: the next attempt may start one here.
		if !errors.Is(err, errGone) {
			return nil, err
		}
	}
}

// startOwn starts a server in this process, on the claimed directory or in memory.
func startOwn(ctx context.Context, o *Options, c *claim) (_ *Server, err error) {
	s := &Server{namespace: o.namespace(), claim: c, log: &serverLog{to: o.logger()}, owner: newOwnerGuard(o != nil && o.Closed)}
	defer func() {
		if err != nil {
			s.Stop()
		}
	}()
	addr, err := o.addr()
	if err != nil {
		return nil, err
	}
	// Before the database, so that an address in use is noticed at once and leaves no
	// file behind.
	if _, err := choosePorts(addr); err != nil {
		return nil, err
	}
	dir := ""
	if c != nil {
		dir = c.dir
	}
	if s.db, err = openDatabase(ctx, dir, o); err != nil {
		return nil, err
	}
	if s.instance, s.addr, err = boot(addr, s.db, o, s.log, s.owner); err != nil {
		return nil, err
	}
	if err := prepare(ctx, s, o); err != nil {
		return nil, err
	}
	if c == nil {
		return s, nil
	}
	id, err := clusterID(ctx, s.addr)
	if err != nil {
		return nil, fmt.Errorf("devserver: %w", err)
	}
	if err := c.publish(peer{addr: s.addr, cluster: id}); err != nil {
		return nil, err
	}
	return s, nil
}

// Addr returns the host and port at which the server listens.
func (s *Server) Addr() string { return s.addr }

// Namespace returns the namespace that is ready for use.
func (s *Server) Namespace() string { return s.namespace }

// Open lets other clients in, if [Options.Closed] kept them out. Further calls do
// nothing, and neither do calls for a shared server.
func (s *Server) Open() {
	if s.owner != nil {
		s.owner.open()
	}
}

// Shared reports whether the server belongs to somebody else with the same data
// directory: another process, or an earlier Start in this one. It ends when its owner
// stops it; Stop does nothing.
func (s *Server) Shared() bool { return s.shared }

// Dial returns a client of the server. It sets HostPort, and Namespace if that is not set. Unless
// they are set, it turns compression off (on loopback, compressing takes longer than sending) and
// logs with slog's default logger from level warn upwards. The SDK's own default logs everything to
// standard output. The caller closes the client. Stop workers and close clients before the server.
func (s *Server) Dial(ctx context.Context, o client.Options) (client.Client, error) {
	o.HostPort = s.addr
	if o.Namespace == "" {
		o.Namespace = s.namespace
	}
	if o.ConnectionOptions.GrpcCompression == nil {
		o.ConnectionOptions.GrpcCompression = &client.GrpcCompressionNone{}
	}
	if o.Logger == nil {
		o.Logger = log.NewStructuredLogger(slog.New(warnings{slog.Default().Handler()}))
	}
	o.ConnectionOptions.DialOptions = append(slices.Clip(o.ConnectionOptions.DialOptions), s.owner.pass())
	c, err := client.DialContext(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("devserver: dial %s: %w", s.addr, err)
	}
	return c, nil
}

// Stop stops the server and returns when its ports, its lock and its file are free. That
// takes 30 ms, or a second if workers still poll or callers still wait for a run. Further
// calls wait for the first one and do nothing else.
//
// One idle connection of the server's own remains, with four goroutines, which nothing
// outside of the server can reach. gRPC closes it after half an hour.
func (s *Server) Stop() {
	s.stop.Do(func() {
		if s.shared {
			return
		}
		s.log.mute()
		// Before the services stop: no new process should find a server that is ending.
		if s.claim != nil {
			s.claim.withdraw()
		}
		if s.instance != nil {
			if err := s.instance.stop(); err != nil {
				s.log.to.Warn("devserver: the server did not stop cleanly", "error", err)
			}
		}
		if s.db != nil {
			s.db.close()
		}
		// The lock last: the next owner opens the database as soon as it has it.
		if s.claim != nil {
			s.claim.release()
		}
	})
}
