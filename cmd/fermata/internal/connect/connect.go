package connect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/logging"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/loopback"
	"github.com/fermata-agents/fermata/live"
	"github.com/fermata-agents/fermata/signals"
)

// DefaultAddress is where Temporal usually listens. Tests use another: something may
// listen there on a developer's machine.
var DefaultAddress = "127.0.0.1:7233"

const (
	DefaultNamespace = "default"

	// DialPatience bounds the wait for a server that was named. It is enough for one that
	// is just starting, and short for one that is not there.
	DialPatience = 4 * time.Second
	// probePatience bounds the check for a server on loopback that nobody named.
	probePatience = 300 * time.Millisecond
)

// Flags say which server, task queue and store a command means. The zero value means
// those of the environment, else those in the data directory.
type Flags struct {
	// Address is the Temporal server's HOST:PORT.
	Address string
	// Namespace is the Temporal namespace; empty for "default".
	Namespace string
	// Profile is a profile of temporal.toml.
	Profile string
	// TaskQueue is the task queue of the runs; empty for "fermata".
	TaskQueue string
	// Data is the data directory of the embedded server and the store; empty for the
	// user's own.
	Data string
	// Store is a folder or the URL of a database or a bucket; empty for a folder in the data
	// directory.
	Store string
	// StoreShared says that every worker sees the store's folder, on any machine.
	StoreShared bool
}

// Connector finds the server of one invocation and opens its store, once each.
type Connector struct {
	Flags
	// Log is where clients and the embedded server log.
	Log *logging.Log
	// Notify tells a person something beside the output.
	Notify func(format string, args ...any)
	// Meters count what clients do; nil counts nothing.
	Meters *sdkmetric.MeterProvider

	openedStore openedStore
	followed    bool  // the task queue is that of a session
	storeErr    error // why there is no store; nil if there is one or it was not opened yet
	brokerConn  brokerConn
	local       *loopback.Client // reaches the endpoint of another process
}

// Close closes the connections to the store and for live events.
func (c *Connector) Close() {
	if c.local != nil {
		c.local.Close()
	}
	c.brokerConn.close()
	c.openedStore.close()
}

// StoreError returns why there is no store; nil if there is one or it was not opened yet.
func (c *Connector) StoreError() error { return c.storeErr }

// Holds returns what spreads holds through the broker; nil without a broker.
func (c *Connector) Holds() live.Holds {
	if c.brokerConn.holds == nil {
		return nil
	}
	return c.brokerConn.holds
}

// Find returns the server that the user means: the named one, or that of the data
// directory. If the data directory is not named either, it may be one that listens where
// Temporal usually does.
func (c *Connector) Find(ctx context.Context) (*Server, error) {
	s, err := c.Look(ctx)
	if err == nil && s == nil {
		dir, _ := c.DataDir() // looked at already
		if c.Data != "" {
			return nil, agent.Errorf(agent.CodeUnreachable, "no Temporal server is named, and none runs in the data directory %s: start one with %s, or name one with --address, --profile or TEMPORAL_ADDRESS", dir, c.CommandLine("dev"))
		}
		err = agent.Errorf(agent.CodeUnreachable, "no Temporal server is named, none runs in the data directory %s and none listens at %s: start one with %s, or name one with --address, --profile or TEMPORAL_ADDRESS", dir, DefaultAddress, c.CommandLine("dev"))
	}
	return s, err
}

// FindOrStart is Find, but starts the embedded server if there is none.
func (c *Connector) FindOrStart(ctx context.Context) (*Server, error) {
	s, err := c.Look(ctx)
	if err != nil || s != nil {
		return s, err
	}
	dir, err := c.DataDir()
	if err != nil {
		return nil, err
	}
	o, _, err := c.clientOptions()
	if err != nil {
		return nil, err
	}
	s, err = c.embed(ctx, dir, o, true)
	return c.noteServer(s), err
}

// noteServer says which server a command uses, so that an empty list is not from the
// wrong one unnoticed.
func (c *Connector) noteServer(s *Server) *Server {
	switch {
	case s == nil:
	case s.InProcess():
		c.Notify("temporal %s, namespace %s (embedded in this process, data in %s)", s.Addr, s.Namespace, s.Data)
	case s.unnamed:
		c.Notify("temporal %s, namespace %s (not named: it listens at Temporal's usual address)", s.Addr, s.Namespace)
	default:
		c.Notify("temporal %s, namespace %s", s.Addr, s.Namespace)
	}
	return s
}

// Look is Find, but returns nil if no server is named and none runs.
func (c *Connector) Look(ctx context.Context) (*Server, error) {
	o, named, err := c.clientOptions()
	if err != nil {
		return nil, err
	}
	if named {
		s, err := c.dial(ctx, o)
		return c.noteServer(s), err
	}
	dir, err := c.DataDir()
	if err != nil {
		return nil, err
	}
	// Only if somebody runs it, because looking must not start a server.
	if hasServer(dir) {
		if s, err := c.embed(ctx, dir, o, false); err != nil || s != nil {
			return c.noteServer(s), err
		}
	}
	// A user who names a directory means its server, and no other.
	if c.Data != "" || !listens(DefaultAddress) {
		return nil, nil
	}
	s, err := c.dial(ctx, o)
	if err != nil {
		return nil, err
	}
	s.unnamed = true
	return c.noteServer(s), nil
}

// Queue returns the task queue of the runs.
func (c *Connector) Queue() string { return cmp.Or(c.TaskQueue, signals.TaskQueue) }

// Client returns the client of runs on a server. It works without a store: what needs
// none continues, and the rest fails with the reason.
func (c *Connector) Client(ctx context.Context, s *Server) (*fermata.Client, error) {
	// Checked before the store is opened: opening creates a missing folder.
	c.storeErr = c.CheckLostStore(ctx, s)
	transcripts, err := c.nameStore(ctx)
	// A lost store was explained better above.
	if err != nil && c.storeErr == nil {
		return nil, err
	}
	// As given: without it, a message or a fork goes where the session's last run was.
	o := &fermata.Options{TaskQueue: c.TaskQueue}
	if c.storeErr == nil {
		o.Store = transcripts
		c.warnFull(StoreFolders(transcripts)...)
	} else {
		c.Notify("fermata: warning: %v", c.storeErr)
	}
	if far, err := c.LiveEnds(s); err != nil {
		return nil, err
	} else if far != nil {
		o.Live = far
	}
	if c.storeErr == nil {
		// Only a warning: a wrong store still allows commands that need none.
		if err := c.CheckStore(ctx, s, transcripts); errors.Is(err, agent.CodeNotSetUp) {
			c.Notify("fermata: warning: %v", err)
		}
	}
	return fermata.New(s.Client, o), nil
}

// FollowQueue makes the task queue that of a session's last run, unless the user named one. It reports
// whether that is another than the default.
func (c *Connector) FollowQueue(ctx context.Context, s *Server, session string) bool {
	if c.TaskQueue != "" {
		return false
	}
	// Without an answer the default stays: what comes next says what is wrong.
	d, err := s.DescribeWorkflowExecution(ctx, session, "")
	queue := d.GetWorkflowExecutionInfo().GetTaskQueue()
	if err != nil || d.GetWorkflowExecutionInfo().GetType().GetName() != signals.WorkflowType || queue == c.Queue() {
		return false
	}
	c.TaskQueue, c.followed = queue, true
	return true
}

// WithQueueHint adds to an error about a missing part of a session that the session
// belongs to another task queue, if it does. The workers there may have another store.
func (c *Connector) WithQueueHint(ctx context.Context, s *Server, session string, err error) error {
	if !slices.Contains([]agent.Code{agent.CodeNotFound, agent.CodeChunkMissing, agent.CodeNoWorker, agent.CodeTimeout}, agent.CodeOf(err)) {
		return err
	}
	// A short wait: the hint must not delay the error.
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	d, lost := s.DescribeWorkflowExecution(ctx, session, "")
	queue := d.GetWorkflowExecutionInfo().GetTaskQueue()
	// The same queue explains nothing, unless only FollowQueue found it.
	if lost != nil || queue == c.Queue() && !c.followed {
		return err
	}
	where := ""
	if recorded, lost := signals.ReadStore(ctx, s.Client, queue); lost == nil {
		where = ", whose store is in " + recorded.Place
	}
	return agent.Errorf(agent.CodeOf(err), "%w; session %s belongs to the task queue %s%s: name them with --task-queue and --store", err, session, queue, where)
}

// WithServer calls do with the server and a client of its runs, and closes both
// afterwards.
func (c *Connector) WithServer(ctx context.Context, do func(*Server, *fermata.Client) error) error {
	s, err := c.Find(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	runs, err := c.Client(ctx, s)
	if err != nil {
		return fmt.Errorf("opening the store: %w", err)
	}
	return do(s, runs)
}
