package devserver

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/metrics"
)

// Options configures a server. With the zero value or nil, the server keeps its data in
// the user's data directory and listens on a free port.
type Options struct {
	// DataDir is the directory of the database, the lock and the address file. It is
	// created if it does not exist. Empty means the directory "fermata" in the user's
	// data directory: $XDG_DATA_HOME or ~/.local/share on Linux, ~/Library/Application
	// Support on macOS, %LocalAppData% on Windows.
	DataDir string

	// InMemory keeps everything in memory. Nothing is written or locked, and the data is
	// gone after Stop. It can't be combined with DataDir.
	InMemory bool

	// Addr is the host and port to listen on. The host must be a loopback address or
	// "localhost". Empty means "127.0.0.1:0", and port 0 means a free port. A shared
	// server keeps its address.
	Addr string

	// Namespace is the namespace to create. Empty means "default".
	Namespace string

	// Retention is how long closed runs can be read, at least one hour. Zero means 90
	// days. It is set at every start. On a shared server it is set only for a new
	// namespace.
	Retention time.Duration

	// ContinueAsNewAt is the number of history events at which the server suggests to
	// continue as new. Zero means the server's own 4096. A small number lets a test see
	// in a second what takes a run hours.
	ContinueAsNewAt int

	// UpdatesInFlight is the most updates of one workflow at a time. Zero means 1000; a
	// server's default is 10, which a test can set here.
	UpdatesInFlight int

	// Nexus opens an HTTP port, which the server needs to call Nexus operations. It is a free
	// port on the host of Addr. The server's HTTP API stays closed. [ForTest], [ForPackage] and
	// the command fermata dev set it.
	Nexus bool

	// Metrics gets the server's own metrics. Nil means none.
	Metrics metrics.Handler

	// Logger gets the server's own log from level warn upwards. Nil means no log.
	Logger *slog.Logger

	// Closed lets only clients of [Server.Dial] use a namespace until [Server.Open]. So a
	// worker can be ready before anybody else calls. Calls of others wait meanwhile. It
	// has no effect on a shared server.
	Closed bool
}

const (
	defaultAddr      = "127.0.0.1:0"
	defaultNamespace = "default"
	defaultRetention = 90 * 24 * time.Hour

	// minRetention is the server's own (system.namespaceMinRetentionLocal). A shorter one
	// would be accepted at creation and refused at the next start.
	minRetention = time.Hour
)

func (o *Options) inMemory() bool { return o != nil && o.InMemory }

func (o *Options) namespace() string {
	if o == nil {
		return defaultNamespace
	}
	return cmp.Or(o.Namespace, defaultNamespace)
}

func (o *Options) retention() time.Duration {
	if o == nil {
		return defaultRetention
	}
	return cmp.Or(o.Retention, defaultRetention)
}

// settings returns the server's dynamic configuration.
func (o *Options) settings() dynamicconfig.StaticClient {
	if o == nil {
		return settings
	}
	own := maps.Clone(settings)
	if o.ContinueAsNewAt > 0 {
		own[dynamicconfig.HistoryCountSuggestContinueAsNew.Key()] = o.ContinueAsNewAt
	}
	if o.UpdatesInFlight > 0 {
		own[dynamicconfig.WorkflowExecutionMaxInFlightUpdates.Key()] = o.UpdatesInFlight
	}
	return own
}

func (o *Options) nexus() bool { return o != nil && o.Nexus }

func (o *Options) metrics() metrics.Handler {
	if o == nil || o.Metrics == nil {
		return metrics.NoopMetricsHandler
	}
	return o.Metrics
}

func (o *Options) logger() *slog.Logger {
	if o == nil || o.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Logger
}

// addr returns the address to listen on, with an IP as its host.
func (o *Options) addr() (*net.TCPAddr, error) {
	given := defaultAddr
	if o != nil {
		given = cmp.Or(o.Addr, defaultAddr)
	}
	host, port, err := net.SplitHostPort(given)
	if err != nil {
		return nil, fmt.Errorf("devserver: address %q: %w", given, err)
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	ip := net.ParseIP(host)
	if ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("devserver: address %q is not loopback: a development server has no authentication, use 127.0.0.1", given)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("devserver: address %q: port %q is not a number from 0 to 65535", given, port)
	}
	return &net.TCPAddr{IP: ip, Port: int(n)}, nil
}

// dataDir returns the directory of the database as an absolute path.
func (o *Options) dataDir() (string, error) {
	if o != nil && o.DataDir != "" {
		return filepath.Abs(o.DataDir)
	}
	dir, err := DefaultDataDir()
	if err != nil {
		return "", fmt.Errorf("devserver: no data directory: %w; set Options.DataDir", err)
	}
	return dir, nil
}

// DefaultDataDir returns the data directory of a server without [Options.DataDir]: the
// folder fermata in the user's data directory of this platform. It need not exist.
func DefaultDataDir() (string, error) {
	base, err := userDataDir()
	return filepath.Join(base, "fermata"), err
}

// validate returns the first fault that can be found without touching files or ports.
func (o *Options) validate() error {
	if o.inMemory() && o.DataDir != "" {
		return errors.New("devserver: Options.InMemory and Options.DataDir exclude each other")
	}
	if r := o.retention(); r < minRetention {
		return fmt.Errorf("devserver: retention %v is shorter than the server's least, %v", r, minRetention)
	}
	if o != nil && o.ContinueAsNewAt < 0 {
		return fmt.Errorf("devserver: ContinueAsNewAt is %d, and must not be negative", o.ContinueAsNewAt)
	}
	if o != nil && o.UpdatesInFlight < 0 {
		return fmt.Errorf("devserver: UpdatesInFlight is %d, and must not be negative", o.UpdatesInFlight)
	}
	_, err := o.addr()
	return err
}

// userDataDir returns the user's data directory on this platform. The standard library
// knows only those for configuration and caches.
func userDataDir() (string, error) {
	switch runtime.GOOS {
	case "windows":
		if dir := os.Getenv("LocalAppData"); dir != "" {
			return dir, nil
		}
		return "", errors.New("%LocalAppData% is not set")
	case "darwin", "ios":
		home, err := os.UserHomeDir()
		return filepath.Join(home, "Library", "Application Support"), err
	}
	// The specification of $XDG_DATA_HOME says to ignore a relative one.
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return dir, nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".local", "share"), err
}
