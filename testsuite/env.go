package testsuite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	temporal "go.temporal.io/sdk/client"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/worker"
)

// Options says what an [Env] runs, and where. Worker is required.
type Options struct {
	// Worker are the options of the worker: agents, tools and everything else. The Env
	// replaces TaskQueue by its own and leaves Deployment empty. Without a Store it uses
	// a folder of the test, and without a Logger it logs nothing.
	Worker *worker.Options
	// Model answers instead of every model that an agent or one of its judges names; usually a
	// [Script]. The price and window are still those of Worker.Models. Nil means that Worker.Models are
	// called.
	Model model.Model
	// Person answers the requests of runs; nil means that only the test does.
	Person *Person
	// Activities are your own Temporal activities, by type, which tools and steps of flows
	// call (tool.Activity, flow.Activity). They are for Temporal's test environment. On a
	// Server, start the worker that has them.
	Activities map[string]any
	// Server is a client of a real server, such as devserver's. Nil means Temporal's test
	// environment, without a server, which takes milliseconds. That environment does not
	// handle sub-agents and the cancellation of calls as a server does. A test that needs
	// them fails there, and the failure says so.
	Server temporal.Client
	// Connection are the options with which Server was dialled: its Namespace, TLS,
	// credentials, and what [client.Prepare] set. Empty means the namespace "default"
	// without encryption. A worker that crashes has its own connection, made with these
	// options.
	Connection temporal.Options
	// Crash is the point at which the worker dies and another one takes over, see
	// [EveryCrash]; nil means never. It needs a Server.
	Crash *Crash
}

func (o *Options) namespace() string {
	return cmp.Or(o.Connection.Namespace, "default")
}

// Env runs agents for a test, with their tools, people and timers. While a run is
// suspended, time stands still, except for [Env.FastForward]. Everything that goes wrong
// fails the test at once. Use an Env from one goroutine only. Make one with [New].
type Env struct {
	t       testing.TB
	backend backend
	log     *store.Log
	count   int // of the sessions that it has named
	// suffix keeps the names of its sessions distinct from those of other tests on a
	// server.
	suffix    string
	stateless map[string]bool // by the names of agents
}

// backend is where runs are executed: a server or Temporal's test environment.
type backend interface {
	start(ctx context.Context, session, name, text string, o *client.StartOptions) error
	// wait waits until a run is suspended or has ended. For a suspended run, the Outcome
	// has the suspension and no end.
	wait(ctx context.Context, session string) (*agent.Outcome, error)
	status(ctx context.Context, session string) (agent.RunStatus, error)
	send(ctx context.Context, session string, c agent.Command) (agent.Ack, error)
	skip(ctx context.Context, d time.Duration) error
	drain(ctx context.Context) error
}

// New returns an Env for the time of a test. If the options do not fit together, the test
// fails.
func New(t testing.TB, o *Options) *Env {
	t.Helper()
	if o == nil {
		o = &Options{}
	}
	require.NoError(t, o.Person.Check())
	own := o.worker(t)
	s := &Env{t: t, log: store.NewLog(own.Store), stateless: map[string]bool{}}
	for _, def := range own.Agents {
		s.stateless[def.Name] = def.Stateless
	}
	if o.Server != nil {
		require.Empty(t, o.Activities, "testsuite.Options.Activities are for Temporal's test environment: with testsuite.Options.Server, start the worker that has them")
	}
	if o.Server == nil {
		require.Nil(t, o.Crash, "testsuite.Options.Crash needs testsuite.Options.Server: Temporal's test environment has no worker that could die")
		s.backend = newTestEnvBackend(t, own, o.Person, o.Activities)
	} else {
		s.backend, s.suffix = newServerBackend(t, own, o), "-"+uuid.NewString()[:8]
	}
	return s
}

// worker returns the worker's options with what the Env adds.
func (o *Options) worker(t testing.TB) *worker.Options {
	t.Helper()
	require.NotNil(t, o.Worker, "testsuite.Options.Worker is missing: it has the agents that the test is about")
	own := *o.Worker
	if own.Logger == nil {
		// A test's output should be its own.
		own.Logger = zap.NewNop()
	}
	// A queue of its own: tests on one server must not get each other's tasks.
	own.TaskQueue, own.Deployment = "test-"+strings.Map(inQueue, t.Name())+"-"+uuid.NewString()[:8], ""
	if own.Store == nil {
		dir, err := store.OpenDir(t.TempDir(), nil)
		require.NoError(t, err)
		own.Store = dir
	}
	if o.Model != nil {
		own.Models = map[string]model.Model{}
		for _, a := range own.Agents {
			// The name alone decides: fallbacks and judges' models are replaced, too.
			names := append([]string{a.Model}, a.Fallbacks...)
			for _, k := range a.Checks() {
				if k.Judge != nil && k.Judge.Model != "" {
					names = append(names, k.Judge.Model)
				}
			}
			for _, name := range names {
				own.Models[name] = replacementModel{o.Model, known(o.Worker.Models, name)}
			}
		}
	}
	return &own
}

// replacementModel answers instead of a model, and has that model's price and window.
type replacementModel struct {
	model.Model
	info model.Info
}

func (s replacementModel) Info(name string) model.Info {
	if s.info.IsZero() {
		return s.Model.Info(name)
	}
	return s.info
}

// known returns what is known of a model by its full name; the zero value if the model is
// missing or nil. It may be, in a test of a program that makes its models elsewhere.
func known(models map[string]model.Model, name string) model.Info {
	if m := models[name]; m != nil {
		return m.Info(name)
	}
	provider, own, _ := strings.Cut(name, "/")
	if m := models[provider]; m != nil && own != "" {
		return m.Info(own)
	}
	return model.Info{}
}

func inQueue(r rune) rune {
	// These characters have a meaning in queries and paths.
	if strings.ContainsRune(" /\\\"'", r) {
		return '-'
	}
	return r
}

// Start starts a run; o may be nil. Without a session in o, each run gets a new one:
// "session-1", "session-2" and so on, with a unique suffix on a server. A stateless agent's run gets a
// random name. EndWith needs a
// server.
func (s *Env) Start(name, text string, o *client.StartOptions) *Run {
	s.t.Helper()
	with := client.StartOptions{}
	if o != nil {
		with = *o
	}
	// A number, so the same test has the same names each time; a server is shared, so it needs the
	// suffix.
	switch {
	case with.Session != "":
	case s.stateless[name]: // it refuses a session's name
		with.Session = uuid.NewString()
	default:
		s.count++
		with.Session = fmt.Sprintf("session-%d%s", s.count, s.suffix)
	}
	require.NoError(s.t, s.backend.start(s.t.Context(), with.Session, name, text, &with))
	return s.Run(with.Session)
}

// Run returns the last run of a session, such as one that another run has started:
// "session-1/clerk-1".
func (s *Env) Run(session string) *Run {
	return &Run{Session: session, env: s}
}

// FastForward lets time pass for every live run of the Env, once all of them are
// suspended. What becomes due happens at its time, one after the other, and the Person
// answers. On a server it needs time skipping, which devserver has. There a run that
// waits for child runs has no time of its own: only the time of its children passes.
func (s *Env) FastForward(d time.Duration) {
	s.t.Helper()
	require.Positive(s.t, d, "time goes one way")
	require.NoError(s.t, s.backend.skip(s.t.Context(), d))
}

// view returns what is stored of a session.
func (s *Env) view(session string) *store.View {
	s.t.Helper()
	head, err := s.log.Head(s.t.Context(), session)
	// A run that has sealed nothing yet has no head.
	if errors.Is(err, agent.CodeNotFound) {
		return &store.View{}
	}
	require.NoError(s.t, err)
	v, err := s.log.View(s.t.Context(), head.Digest)
	require.NoError(s.t, err)
	return v
}
