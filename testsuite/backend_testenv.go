package testsuite

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	sdkworker "go.temporal.io/sdk/worker"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/worker"
)

// testEnvBackend executes runs in Temporal's test environment, each in its own.
type testEnvBackend struct {
	t      testing.TB
	parts  *worker.Components
	person *personState
	runs   []*testEnvRun // in the order of their starts
	// activities are the test's own, by type.
	activities map[string]any
	files      *client.Client // it only stores files
}

func newTestEnvBackend(t testing.TB, o *worker.Options, p *Person, activities map[string]any) *testEnvBackend {
	t.Helper()
	sdkworker.SetBinaryChecksum("test") // without it, the environment hashes the test binary within a workflow task
	parts, err := o.Components()
	require.NoError(t, err)
	r := &testEnvBackend{t: t, parts: parts, person: p.newState(), activities: activities, files: client.New(nil, &client.Options{Store: o.Store})}
	t.Cleanup(func() {
		for _, p := range r.runs {
			p.abandon()
		}
	})
	return r
}

// start starts a run once the previous one in the session has ended, and after all the
// time that has passed in the Env.
func (r *testEnvBackend) start(ctx context.Context, session, name, text string, o *client.StartOptions) error {
	if o.EndWith != nil { // its time is the program's, and the environment's is another
		return agent.Errorf(agent.CodeInvalidInput, "EndWith needs a server: set Options.Server, or call Cancel where the context would be done").WithPath("end_with")
	}
	begin := time.Now()
	// The session's clock never goes back, although each run has its own environment.
	for _, p := range r.runs {
		if p.session == session && !p.ended() {
			return agent.Errorf(agent.CodeBusy, "session %s has a live run; wait for its end, or name another session", session)
		}
		if now := p.now(); now.After(begin) {
			begin = now
		}
	}
	in := o.Input(name, text)
	files, err := r.files.PutFiles(ctx, session, o.Files...)
	if err != nil {
		return fmt.Errorf("start refused: %w", err)
	}
	in.Input.Parts = slices.Concat(in.Input.Parts, files)
	payload, err := converter.GetDefaultDataConverter().ToPayload(in)
	if err != nil {
		return fmt.Errorf("start refused: %w", agent.Errorf(agent.CodeInvalidInput, "data is not JSON: %w", err).WithPath("input.data"))
	}
	p := newTestEnvRun(r, session, fmt.Sprintf("run-%d", len(r.runs)+1), begin)
	r.runs = append(r.runs, p)
	go p.perform(payload)
	return nil
}

// find returns the last run of a session.
func (r *testEnvBackend) find(session string) (*testEnvRun, error) {
	for i := len(r.runs) - 1; i >= 0; i-- {
		if r.runs[i].session == session {
			return r.runs[i], nil
		}
	}
	return nil, agent.Errorf(agent.CodeNotFound, "there is no session %s on this stage", session)
}

func (r *testEnvBackend) wait(ctx context.Context, session string) (*agent.Outcome, error) {
	p, err := r.find(session)
	if err != nil {
		return nil, err
	}
	// The run must not wait forever in a test that has no time limit.
	soon, cancel := context.WithTimeout(ctx, patient)
	defer cancel()
	err = p.settle(soon)
	if out := p.result(); err == nil && out != nil {
		return out, nil
	}
	if err != nil && soon.Err() != nil {
		st, _ := p.status(ctx)
		return nil, fmt.Errorf("%w; it is %s and does %s", err, st.Status, text(st.InFlight))
	}
	if err != nil {
		return nil, err
	}
	st, err := p.status(ctx)
	o := &agent.Outcome{
		V: agent.Version, Type: "outcome", Session: session, Run: st.Run, Agent: st.Agent, Status: st.Status, Reason: st.Reason,
		Suspension: st.Suspension, Turns: st.Turn, Usage: st.Usage, Cost: st.Cost, Tree: st.Tree, Seq: st.Seq,
	}
	if st.Suspension != nil {
		o.Checkpoint = st.Suspension.Checkpoint
	}
	return o, err
}

func (r *testEnvBackend) status(ctx context.Context, session string) (agent.RunStatus, error) {
	p, err := r.find(session)
	if err != nil {
		return agent.RunStatus{}, err
	}
	return p.status(ctx)
}

func (r *testEnvBackend) send(ctx context.Context, session string, c agent.Command) (agent.Ack, error) {
	p, err := r.find(session)
	if err != nil {
		return agent.Ack{}, err
	}
	return p.send(ctx, c)
}

// skip lets time pass for one run after the other: they do not affect each other.
func (r *testEnvBackend) skip(ctx context.Context, d time.Duration) error {
	for _, p := range r.runs {
		if err := p.settle(ctx); err != nil {
			return err
		}
		if err := p.skip(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// refuseTree fails a run that starts a child workflow.
func refuseTree() {
	panic(agent.Errorf(agent.CodeNotSetUp, "the run starts a sub-agent, or a workflow of your own: Temporal's test environment does not hold, cancel and continue them as a server does; set testsuite.Options.Server, for example to a client of devserver.ForTest"))
}

// payloadOf encodes a verb as Temporal transports it.
func payloadOf(c agent.Command) (converter.RawValue, error) {
	p, err := converter.GetDefaultDataConverter().ToPayload(c)
	return converter.NewRawValue(p), err
}
