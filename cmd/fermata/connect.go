package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/disk"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/loopback"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/secret"
	"github.com/fermata-agents/fermata/devserver"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
)

// defaultAddress is where Temporal usually listens. Tests have another: on a
// machine where many things are tried, something may listen there.
var defaultAddress = "127.0.0.1:7233"

const (
	defaultNamespace = "default"

	// dialPatience bounds the wait for a server that was named: one that is just
	// starting is waited for, and nobody waits long for one that is not there.
	dialPatience = 4 * time.Second
	// probePatience bounds the look for a server that nobody named, on loopback.
	probePatience = 300 * time.Millisecond
)

// server is the Temporal server that a command speaks to.
type server struct {
	client.Client
	addr, namespace string
	// embedded is set where the server is, or was found as, that of the data directory.
	embedded *devserver.Server
	// data is where a server in this process keeps its data.
	data string
	// live is the endpoint of live events, where the server lives in this process.
	live *loopback.Server
	// unnamed tells that nobody named the server: it listens where Temporal usually does.
	unnamed bool
}

// inProcess reports whether the server lives in this process and ends with it.
func (s *server) inProcess() bool { return s.embedded != nil && !s.embedded.Shared() }

// close ends what belongs to this process.
func (s *server) close() {
	s.Client.Close()
	if s.live != nil {
		s.live.Close()
	}
	if s.embedded != nil {
		s.embedded.Stop()
	}
}

// find finds the server that the user means: the one that is named, that of the
// data directory, or, unless that directory is named, one that listens where Temporal
// usually does.
func (c *cli) find(ctx context.Context) (*server, error) {
	s, err := c.look(ctx)
	if err == nil && s == nil {
		dir, _ := c.dataDir() // looked at already
		if c.data != "" {
			return nil, agent.Errorf(agent.CodeUnreachable, "no Temporal server is named, and none runs in the data directory %s: start one with fermata dev --data %s, or name one with --address, --profile or TEMPORAL_ADDRESS", dir, shellWord(c.data))
		}
		err = agent.Errorf(agent.CodeUnreachable, "no Temporal server is named, none runs in the data directory %s and none listens at %s: start one with fermata dev, or name one with --address, --profile or TEMPORAL_ADDRESS", dir, defaultAddress)
	}
	return s, err
}

// findOrStart is find, and starts the embedded server if there is none.
func (c *cli) findOrStart(ctx context.Context) (*server, error) {
	s, err := c.look(ctx)
	if err != nil || s != nil {
		return s, err
	}
	dir, err := c.dataDir()
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

// noteServer says which server a command speaks to: an empty list is then never
// a wrong one.
func (c *cli) noteServer(s *server) *server {
	switch {
	case s == nil:
	case s.inProcess():
		c.Note("temporal %s, namespace %s (embedded in this process, data in %s)", s.addr, s.namespace, s.data)
	case s.unnamed:
		c.Note("temporal %s, namespace %s (it listens where Temporal usually does; nobody named it)", s.addr, s.namespace)
	default:
		c.Note("temporal %s, namespace %s", s.addr, s.namespace)
	}
	return s
}

// look is find; it returns nil where there is no server and none was named.
func (c *cli) look(ctx context.Context) (*server, error) {
	o, named, err := c.clientOptions()
	if err != nil {
		return nil, err
	}
	if named {
		s, err := c.dial(ctx, o)
		return c.noteServer(s), err
	}
	dir, err := c.dataDir()
	if err != nil {
		return nil, err
	}
	if hasServer(dir) {
		if s, err := c.embed(ctx, dir, o, false); err != nil || s != nil {
			return c.noteServer(s), err
		}
	}
	// Who names a directory means its server, and no other one.
	if c.data != "" || !listens(defaultAddress) {
		return nil, nil
	}
	s, err := c.dial(ctx, o)
	if err != nil {
		return nil, err
	}
	s.unnamed = true
	return c.noteServer(s), nil
}

// clientOptions are what flags, environment and profile say, in this order.
// named reports whether they say where the server is.
func (c *cli) clientOptions() (o client.Options, named bool, err error) {
	profile, err := c.profileOf()
	if err != nil {
		return o, false, err
	}
	if o, err = optionsOf(profile); err != nil {
		return o, false, err
	}
	o.HostPort = cmp.Or(c.address, o.HostPort)
	o.Namespace = cmp.Or(c.namespace, o.Namespace, defaultNamespace)
	o.Logger = c.log.SDK()
	o.ConnectionOptions.GetSystemInfoTimeout = dialPatience
	if err := c.prepare(&o); err != nil {
		return o, false, err
	}
	named = o.HostPort != "" || c.profile != "" || os.Getenv("TEMPORAL_PROFILE") != ""
	o.HostPort = cmp.Or(o.HostPort, defaultAddress)
	return o, named, nil
}

// profileOf is the profile that flags and environment name, with what the environment
// says over it.
func (c *cli) profileOf() (*envconfig.ClientConfigProfile, error) {
	profile, err := envconfig.LoadClientConfigProfile(envconfig.LoadClientConfigProfileOptions{ConfigFileProfile: c.profile})
	if err != nil {
		file := cmp.Or(os.Getenv("TEMPORAL_CONFIG_FILE"), envconfig.DefaultConfigFilePath())
		return nil, agent.Errorf(agent.CodeInvalidInput, "the configuration of the Temporal client: %w; profiles are in %s", err, file)
	}
	key, err := secret.Get(apiKeyVariable)
	if err != nil {
		return nil, err
	}
	profile.APIKey = cmp.Or(key, profile.APIKey)
	return &profile, nil
}

// apiKeyVariable is the one with the key that Temporal knows this client by.
const apiKeyVariable = "TEMPORAL_API_KEY"

func optionsOf(profile *envconfig.ClientConfigProfile) (client.Options, error) {
	o, err := profile.ToClientOptions(envconfig.ToClientOptionsRequest{})
	if err != nil {
		return o, agent.Errorf(agent.CodeInvalidInput, "the configuration of the Temporal client: %w", err)
	}
	return o, nil
}

// dial connects to a server that is there already.
func (c *cli) dial(ctx context.Context, o client.Options) (*server, error) {
	patient, cancel := context.WithTimeout(ctx, dialPatience)
	defer cancel()
	sdk, err := client.DialContext(patient, o)
	if err != nil {
		return nil, dialFailed(ctx, o, err)
	}
	return &server{Client: sdk, addr: o.HostPort, namespace: o.Namespace}, nil
}

// embed starts the embedded server of a data directory, or finds the one that
// runs. Without start it returns nil where none runs.
func (c *cli) embed(ctx context.Context, dir string, o client.Options, start bool) (*server, error) {
	c.warnFull(disk.Folder{dataFolder, dir}) // before the server keeps us waiting
	options := &devserver.Options{DataDir: dir, Logger: c.log.Server()}
	if start {
		// A namespace is only made by those who start something in it.
		options.Namespace = o.Namespace
	}
	d, err := startServer(ctx, options)
	if err != nil {
		return nil, agent.Errorf(agent.CodeUnreachable, "%w", err)
	}
	if !start && !d.Shared() {
		d.Stop() // the one that ran has just stopped
		return nil, nil
	}
	sdk, err := d.Dial(ctx, client.Options{Namespace: o.Namespace, Logger: o.Logger, MetricsHandler: o.MetricsHandler, ConnectionOptions: client.ConnectionOptions{DialOptions: o.ConnectionOptions.DialOptions}})
	if err != nil {
		d.Stop()
		return nil, agent.Errorf(agent.CodeUnreachable, "%w", err)
	}
	s := &server{Client: sdk, addr: d.Addr(), namespace: o.Namespace, embedded: d, data: dir}
	c.openLiveEndpoint(s, dir)
	return s, nil
}

// listens reports whether something on this machine takes connections there.
func listens(addr string) bool {
	conn, err := net.DialTimeout("tcp", addr, probePatience)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// queue is the task queue of the runs.
func (c *cli) queue() string { return cmp.Or(c.taskQueue, signals.TaskQueue) }

// client is the client of runs on a server. Without a store it is one as well: what needs
// none goes on, and what does fails with the reason.
func (c *cli) client(ctx context.Context, s *server) (*fermata.Client, error) {
	c.storeErr = c.lostStore(ctx, s)
	transcripts, err := c.nameStore(ctx)
	if err != nil && c.storeErr == nil {
		return nil, err
	}
	o := &fermata.Options{TaskQueue: c.queue()}
	if c.storeErr == nil {
		o.Store = transcripts
		c.warnFull(storeFolder(transcripts)...)
	} else {
		c.Note("fermata: warning: %v", c.storeErr)
	}
	if far, err := c.liveEnds(s); err != nil {
		return nil, err
	} else if far != nil {
		o.Live = far
	}
	if c.storeErr == nil {
		if err := c.otherStore(ctx, s, transcripts); errors.Is(err, agent.CodeNotSetUp) {
			c.Note("fermata: warning: %v", err)
		}
	}
	return fermata.New(s.Client, o), nil
}

// lostStore is why there is no store: nobody knows where it would be, or the folder has none
// and the workers of the task queue have had one, there or elsewhere: to open it would make
// an empty one. What can't be known in a moment is not told.
func (c *cli) lostStore(ctx context.Context, s *server) error {
	place, err := c.storePlace()
	if err != nil && s.embedded == nil && agent.CodeOf(err) != agent.CodeInvalidInput {
		return agent.Errorf(agent.CodeNotSetUp, "%w, and no store is named (--store, %s)", err, env.Store)
	}
	if err != nil || strings.Contains(place, "://") || store.IsDir(place) {
		return nil // opening it tells the error
	}
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	recorded, err := signals.ReadStore(ctx, s.Client, c.queue())
	switch {
	case err != nil:
		return nil
	case recorded.Place != place:
		return agent.Errorf(agent.CodeNotSetUp, "there is no store in %s, and none was made: that of the task queue %s is in %s. Name that one (--store, --data, %s), or use another task queue",
			place, c.queue(), recorded.Place, env.Store)
	}
	return agent.Errorf(agent.CodeStoreUnavailable, "the store of the task queue %s is not in %s: is it mounted? Nothing was made in its place. Mount or restore it; if it is gone for good, stop all workers and terminate the workflow %s",
		c.queue(), place, signals.StoreRecordID(c.queue()))
}

// otherStore tells that the workers of the task queue have another store, or the store is
// that of another namespace. What can't be known in a moment is not told: a worker looks
// again.
func (c *cli) otherStore(ctx context.Context, s *server, transcripts store.Store) error {
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	if err := store.CheckNamespace(ctx, transcripts, s.namespace); err != nil {
		return err
	}
	recorded, err := signals.ReadStore(ctx, s.Client, c.queue())
	if err != nil {
		return err
	}
	id, err := store.ReadID(ctx, transcripts)
	if err != nil {
		return err
	}
	return signals.CheckStore(c.queue(), recorded, signals.StoreRecord{ID: id, Place: store.Location(transcripts)})
}

// withQueueHint adds to an error, which says that a part of a session is not available, that
// the session is of another task queue, if it is: the workers there may have another store.
func (c *cli) withQueueHint(ctx context.Context, s *server, session string, err error) error {
	if !slices.Contains([]agent.Code{agent.CodeNotFound, agent.CodeChunkMissing, agent.CodeNoWorker, agent.CodeTimeout}, agent.CodeOf(err)) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	d, lost := s.DescribeWorkflowExecution(ctx, session, "")
	queue := d.GetWorkflowExecutionInfo().GetTaskQueue()
	if lost != nil || queue == c.queue() {
		return err
	}
	where := ""
	if recorded, lost := signals.ReadStore(ctx, s.Client, queue); lost == nil {
		where = ", whose store is in " + recorded.Place
	}
	return agent.Errorf(agent.CodeOf(err), "%w; session %s is of the task queue %s%s: name them with --task-queue and --store", err, session, queue, where)
}

// withServer gives a command the server that is meant, and what speaks to runs on it.
func (c *cli) withServer(ctx context.Context, do func(*server, *fermata.Client) error) error {
	s, err := c.find(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	runs, err := c.client(ctx, s)
	if err != nil {
		return fmt.Errorf("opening the store: %w", err)
	}
	return do(s, runs)
}
