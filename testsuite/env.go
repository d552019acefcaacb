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

// Options say what a [Env] plays, and where. Worker is required.
type Options struct {
	// Worker is what a worker is made with: agents, tools and all else. The stage has a
	// task queue of its own and no deployment, whatever it says there; where its Store
	// and Logger are empty, a store in a folder of the test's own, and silence.
	Worker *worker.Options
	// Model answers instead of every model that an agent names; mostly a
	// [Script]. What Worker.Models know of its price and window holds for it too. Nil
	// means that Worker.Models are asked.
	Model model.Model
	// Person answers what runs ask; nil means that nobody does but the test.
	Person *Person
	// Server is where runs are played: a client of a real server, such as devserver's.
	// Nil means Temporal's test environment, without a server, in milliseconds. What
	// that environment gets wrong, agents below agents and giving up what is in
	// flight, fails the test there and says so.
	Server temporal.Client
	// Connection is what Server was made with: its Namespace, TLS and credentials, and
	// what [client.Prepare] set. Empty means the namespace "default", plain. A worker
	// that dies has a connection of its own, made with it.
	Connection temporal.Options
	// Crash is where the worker dies and another one goes on, see [EveryCrash]; nil
	// means that it lives. It needs a Server.
	Crash *Crash
}

func (o *Options) namespace() string {
	return cmp.Or(o.Connection.Namespace, "default")
}

// Env is where a test plays runs of agents, with their tools, people and timers.
// Time stands still while a run rests, and goes by with [Env.FastForward]. What does not
// come out as the test wants fails it at once. An Env is for one goroutine.
type Env struct {
	t       testing.TB
	backend backend
	log     *store.Log
	count   int // of the sessions that it named
	// suffix keeps the names of its sessions apart from those of others on a server.
	suffix string
}

// backend is where runs are played.
type backend interface {
	start(ctx context.Context, session, name, text string, o *client.StartOptions) error
	// wait waits until a run rests or ends; where it rests the Outcome says why, and
	// has no end.
	wait(ctx context.Context, session string) (*agent.Outcome, error)
	status(ctx context.Context, session string) (agent.RunStatus, error)
	say(ctx context.Context, session string, c agent.Command) (agent.Ack, error)
	skip(ctx context.Context, d time.Duration) error
}

// New makes a stage for the time of a test. What does not fit together in the
// options fails it.
func New(t testing.TB, o *Options) *Env {
	t.Helper()
	if o == nil {
		o = &Options{}
	}
	require.NoError(t, o.Person.check())
	own := o.worker(t)
	s := &Env{t: t, log: store.NewLog(own.Store)}
	if o.Server == nil {
		require.Nil(t, o.Crash, "testsuite.Options.Crash needs testsuite.Options.Server: Temporal's test environment has no worker that could die")
		s.backend = newTestEnvBackend(t, own, o.Person)
	} else {
		s.backend, s.suffix = newServerBackend(t, own, o), "-"+uuid.NewString()[:8]
	}
	return s
}

// worker is the options' worker with what the stage adds.
func (o *Options) worker(t testing.TB) *worker.Options {
	t.Helper()
	require.NotNil(t, o.Worker, "testsuite.Options.Worker is missing: it has the agents that the test is about")
	own := *o.Worker
	if own.Logger == nil {
		own.Logger = zap.NewNop()
	}
	own.TaskQueue, own.Deployment = "test-"+strings.Map(inQueue, t.Name())+"-"+uuid.NewString()[:8], ""
	if own.Store == nil {
		dir, err := store.OpenDir(t.TempDir(), nil)
		require.NoError(t, err)
		own.Store = dir
	}
	if o.Model != nil {
		own.Models = map[string]model.Model{}
		for _, a := range own.Agents {
			for _, name := range append([]string{a.Model}, a.Fallbacks...) {
				own.Models[name] = replacementModel{o.Model, known(o.Worker.Models, name)}
			}
		}
	}
	return &own
}

// replacementModel answers instead of a model, whose price and window it has.
type replacementModel struct {
	model.Model
	info model.Info
}

func (s replacementModel) Info(name string) model.Info {
	if s.info == (model.Info{}) {
		return s.Model.Info(name)
	}
	return s.info
}

// known is what is known of a model by its full name; nothing if it is not there, or is nil,
// as in a test of a program that makes its models elsewhere.
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
	if strings.ContainsRune(" /\\\"'", r) {
		return '-'
	}
	return r
}

// Start begins a run; o may be nil. Without a session in o each run has one of its
// own: "session-1", "session-2" and so on, on a server with an end that no other
// stage has.
func (s *Env) Start(name, text string, o *client.StartOptions) *Run {
	s.t.Helper()
	with := client.StartOptions{}
	if o != nil {
		with = *o
	}
	if with.Session == "" {
		s.count++
		with.Session = fmt.Sprintf("session-%d%s", s.count, s.suffix)
	}
	require.NoError(s.t, s.backend.start(s.t.Context(), with.Session, name, text, &with))
	return s.Run(with.Session)
}

// Run is the last run of a session, such as one that another run has started:
// "session-1/clerk-1".
func (s *Env) Run(session string) *Run {
	return &Run{Session: session, env: s}
}

// FastForward lets so much time go by for every live run of the stage, once all of them
// rest: what falls due meanwhile happens at its time, one thing after the other, and
// the Person answers. On a server it needs time skipping, which devserver has; there
// a run that waits for agents below it has no time of its own, theirs goes by.
func (s *Env) FastForward(d time.Duration) {
	s.t.Helper()
	require.Positive(s.t, d, "time goes one way")
	require.NoError(s.t, s.backend.skip(s.t.Context(), d))
}

// view is what is stored of a session.
func (s *Env) view(session string) *store.View {
	s.t.Helper()
	head, err := s.log.Head(s.t.Context(), session)
	if errors.Is(err, agent.CodeNotFound) {
		return &store.View{}
	}
	require.NoError(s.t, err)
	v, err := s.log.View(s.t.Context(), head.Digest)
	require.NoError(s.t, err)
	return v
}
