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

// A Server is a Temporal server in this process, or one in another process that
// has the same data. The zero value is of no use: call [Start] or, in tests,
// [ForTest]. All methods are safe for concurrent use.
type Server struct {
	addr      string
	namespace string
	shared    bool

	stop sync.Once

	// What Stop takes down; all nil where the server is shared, and claim where
	// it is in memory.
	instance *instance
	db       *database
	claim    *claim
	log      *serverLog
	owner    *ownerGuard // nil where the server is shared
}

// Start starts a server and waits until a workflow can be started on it, which
// takes 0.15 s. Nil options are fine. The first start in a process takes longer, by
// 0.35 s for a program of 200 MB: the SDK hashes the program's file to have a name
// for its build. A program that names it with worker.SetBinaryChecksum before is
// spared that.
//
// Where another process, or another part of this one, has a server on the same
// data directory, Start returns that one; see [Server.Shared]. Where one is just
// starting or stopping, Start waits for it.
//
// The context bounds the start only; its end does not stop the server. An error
// says that the options are wrong, that the address is taken, that the data
// directory cannot be used, or that its owner does not answer; nothing is left
// running then.
func Start(ctx context.Context, o *Options) (*Server, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("devserver: %w", err)
	}
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
		// One that stopped since it was found leaves its place to the next.
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
	// Before the database, so that a taken address is known at once and leaves no
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

// Open lets others in, where [Options.Closed] kept them out. Calls after the first do
// nothing, and so do those of a server that is shared.
func (s *Server) Open() {
	if s.owner != nil {
		s.owner.open()
	}
}

// Shared says that the server belongs to somebody else, who has the same data
// directory: another process, or an earlier Start in this one. It ends when they
// stop it, and Stop does nothing.
func (s *Server) Shared() bool { return s.shared }

// Dial returns a client of the server. It sets the options' HostPort and, where
// they say nothing about them, the Namespace, no compression (what goes over
// loopback takes longer to compress than to send) and slog's default logger, from
// level warn upwards (the SDK's own writes all to standard output). The caller closes the client; stop
// workers and close clients before the server.
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

// Stop stops the server and returns when its ports, its lock and its file are
// free: after some 30 ms, or a second if there still are workers that poll, or
// callers that wait for a run. Calls after the first wait for it and do nothing
// else.
//
// What it leaves behind is one idle connection of the server's own, with four
// goroutines, which nothing outside of the server can reach; gRPC lets go of it
// after half an hour.
func (s *Server) Stop() {
	s.stop.Do(func() {
		if s.shared {
			return
		}
		s.log.mute()
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
		if s.claim != nil {
			s.claim.release()
		}
	})
}
