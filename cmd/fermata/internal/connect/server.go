package connect

import (
	"cmp"
	"context"
	"net"
	"os"
	"path/filepath"

	"go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/disk"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/loopback"
	"github.com/fermata-agents/fermata/devserver"
)

// Server is the Temporal server that a command uses.
type Server struct {
	client.Client
	Addr, Namespace string
	// Embedded is set if the server belongs to the data directory.
	Embedded *devserver.Server
	// Data is where a server in this process keeps its data.
	Data string
	// live is the endpoint of live events if the server runs in this process.
	live *loopback.Server
	// unnamed says that nobody named the server: it listens where Temporal usually does.
	unnamed bool
}

// InProcess reports whether the server runs in this process and ends with it.
func (s *Server) InProcess() bool { return s.Embedded != nil && !s.Embedded.Shared() }

// Close closes what belongs to this process.
func (s *Server) Close() {
	// The client first: its calls would fail and be logged when the server goes.
	s.Client.Close()
	if s.live != nil {
		s.live.Close()
	}
	if s.Embedded != nil {
		s.Embedded.Stop()
	}
}

// dial connects to a server that already runs.
func (c *Connector) dial(ctx context.Context, o client.Options) (*Server, error) {
	patient, cancel := context.WithTimeout(ctx, DialPatience)
	defer cancel()
	sdk, err := client.DialContext(patient, o)
	if err != nil {
		return nil, dialFailed(ctx, o, err)
	}
	return &Server{Client: sdk, Addr: o.HostPort, Namespace: o.Namespace}, nil
}

// embed starts the embedded server of a data directory, or finds the one that runs.
// Without start it returns nil if none runs.
func (c *Connector) embed(ctx context.Context, dir string, o client.Options, start bool) (*Server, error) {
	// First: with a full disk the server may not answer, and the error would not say why.
	c.warnFull(disk.Folder{What: dataFolder, Path: dir})
	options := &devserver.Options{DataDir: dir, Logger: c.Log.Server()}
	if start {
		// Only a command that starts something creates a namespace.
		options.Namespace = o.Namespace
	}
	d, err := StartServer(ctx, options)
	if err != nil {
		// The check that found a running server and this start are not atomic.
		return nil, agent.Errorf(agent.CodeUnreachable, "%w", err)
	}
	if !start && !d.Shared() {
		d.Stop() // the running one has just stopped
		return nil, nil
	}
	// The options carry the keys and metrics; the address is the embedded server's.
	sdk, err := d.Dial(ctx, client.Options{Namespace: o.Namespace, Logger: o.Logger, MetricsHandler: o.MetricsHandler, ConnectionOptions: client.ConnectionOptions{DialOptions: o.ConnectionOptions.DialOptions}})
	if err != nil {
		d.Stop()
		return nil, agent.Errorf(agent.CodeUnreachable, "%w", err)
	}
	s := &Server{Client: sdk, Addr: d.Addr(), Namespace: o.Namespace, Embedded: d, Data: dir}
	c.openLiveEndpoint(s, dir)
	return s, nil
}

// listens reports whether something on this machine accepts connections at an address.
func listens(addr string) bool {
	conn, err := net.DialTimeout("tcp", addr, probePatience)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// StartServer starts the embedded server. Tests replace it with one that they can delay.
var StartServer = StartEmbedded

// StartEmbedded starts the embedded server. It unsets OTEL_TRACES_EXPORTER, which the
// server would also read: it would trace itself, and refuse to start with values that it
// does not know.
func StartEmbedded(ctx context.Context, o *devserver.Options) (*devserver.Server, error) {
	if err := os.Unsetenv("OTEL_TRACES_EXPORTER"); err != nil {
		return nil, err
	}
	return devserver.Start(ctx, o)
}

// StartDemo starts a server with data of its own. If another demo uses that data, it
// starts one in memory; data is then empty.
func (c *Connector) StartDemo(ctx context.Context) (s *Server, data string, err error) {
	base, err := c.DataDir()
	if err != nil {
		return nil, "", err
	}
	data = filepath.Join(base, "demo")
	d, err := StartServer(ctx, &devserver.Options{DataDir: data, Logger: c.Log.Server()})
	// Two demos at once must not see each other's runs.
	if err == nil && d.Shared() {
		data = ""
		d, err = StartServer(ctx, &devserver.Options{InMemory: true, Logger: c.Log.Server()})
	}
	if err != nil {
		return nil, "", agent.Errorf(agent.CodeUnreachable, "the embedded server does not start: %w", err)
	}
	sdk, err := d.Dial(ctx, client.Options{Logger: c.Log.SDK()})
	if err != nil {
		d.Stop()
		return nil, "", agent.Errorf(agent.CodeUnreachable, "%w", err)
	}
	return c.noteServer(&Server{Client: sdk, Addr: d.Addr(), Namespace: d.Namespace(), Embedded: d, Data: cmp.Or(data, "memory")}), data, nil
}

// StartDev starts the embedded server of the data directory. It returns [agent.CodeBusy]
// if another process runs it.
func (c *Connector) StartDev(ctx context.Context, addr string) (*Server, error) {
	dir, err := c.DataDir()
	if err != nil {
		return nil, err
	}
	c.warnFull(disk.Folder{What: dataFolder, Path: dir})
	// On the usual address other tools find the server without flags.
	if addr == "" && Free(DefaultAddress) {
		addr = DefaultAddress
	}
	namespace := c.Namespace
	if namespace == "" {
		namespace = DefaultNamespace
	}
	// Closed: no other command may connect before the worker polls.
	d, err := StartServer(ctx, &devserver.Options{DataDir: dir, Addr: addr, Namespace: namespace, Logger: c.Log.Server(), Closed: true, Nexus: true})
	if err != nil {
		return nil, agent.Errorf(agent.CodeUnreachable, "the embedded server does not start: %w", err)
	}
	if d.Shared() {
		return nil, agent.Errorf(agent.CodeBusy, "the data directory %s is served at %s already, by another fermata: use that one (fermata run, fermata worker), stop it, or name another --data", dir, d.Addr())
	}
	o := client.Options{Logger: c.Log.SDK()}
	if err := c.prepare(&o); err != nil {
		d.Stop()
		return nil, err
	}
	sdk, err := d.Dial(ctx, o)
	if err != nil {
		d.Stop()
		return nil, agent.Errorf(agent.CodeUnreachable, "%w", err)
	}
	s := &Server{Client: sdk, Addr: d.Addr(), Namespace: namespace, Embedded: d}
	c.openLiveEndpoint(s, dir)
	return s, nil
}

// Free reports whether nobody listens at an address of this machine.
func Free(addr string) bool {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return false
	}
	l.Close()
	return true
}
