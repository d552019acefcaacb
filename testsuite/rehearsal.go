package testsuite

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	sdkworker "go.temporal.io/sdk/worker"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/worker"
)

// rehearsal plays runs in Temporal's test environment, each in one of its own.
type rehearsal struct {
	t      testing.TB
	parts  *worker.Parts
	person *visit
	plays  []*play // in the order of their starts
}

func newRehearsal(t testing.TB, o *worker.Options, p *Person) *rehearsal {
	t.Helper()
	sdkworker.SetBinaryChecksum("test") // else the environment hashes the test's file, within a workflow's task
	parts, err := o.Parts()
	require.NoError(t, err)
	r := &rehearsal{t: t, parts: parts, person: p.on()}
	t.Cleanup(func() {
		for _, p := range r.plays {
			p.abandon()
		}
	})
	return r
}

// start begins a run when the one before it in the session has ended, and after all
// the time that has gone by on the stage.
func (r *rehearsal) start(_ context.Context, session, name, text string, o *client.StartOptions) error {
	begin := time.Now()
	for _, p := range r.plays {
		if p.session == session && !p.ended() {
			return agent.Errorf(agent.Busy, "session %s has a live run; wait for its end, or name another session", session)
		}
		if now := p.now(); now.After(begin) {
			begin = now
		}
	}
	payload, err := converter.GetDefaultDataConverter().ToPayload(o.Input(name, text))
	if err != nil {
		return fmt.Errorf("start refused: %w", agent.Errorf(agent.InvalidInput, "data is not JSON: %w", err).At("input.data"))
	}
	p := newPlay(r, session, fmt.Sprintf("run-%d", len(r.plays)+1), begin)
	r.plays = append(r.plays, p)
	go p.perform(payload)
	return nil
}

// find is the last run of a session.
func (r *rehearsal) find(session string) (*play, error) {
	for i := len(r.plays) - 1; i >= 0; i-- {
		if r.plays[i].session == session {
			return r.plays[i], nil
		}
	}
	return nil, agent.Errorf(agent.NotFound, "there is no session %s on this stage", session)
}

func (r *rehearsal) wait(ctx context.Context, session string) (*agent.Outcome, error) {
	p, err := r.find(session)
	if err != nil {
		return nil, err
	}
	soon, cancel := context.WithTimeout(ctx, patient)
	defer cancel()
	err = p.settle(soon)
	if out := p.result(); err == nil && out != nil {
		return out, nil
	}
	if err != nil && soon.Err() != nil {
		st, _ := p.status(ctx)
		return nil, fmt.Errorf("%w; it is %s and does %s", err, st.Status, text(st.Doing))
	}
	if err != nil {
		return nil, err
	}
	st, err := p.status(ctx)
	return &agent.Outcome{
		V: agent.Version, Type: "outcome", Session: session, Run: st.Run, Agent: st.Agent, Status: st.Status, Reason: st.Reason,
		Suspension: st.Suspension, Turns: st.Turn, Usage: st.Usage, Cost: st.Cost, Tree: st.Tree, Seq: st.Seq,
	}, err
}

func (r *rehearsal) status(ctx context.Context, session string) (agent.RunStatus, error) {
	p, err := r.find(session)
	if err != nil {
		return agent.RunStatus{}, err
	}
	return p.status(ctx)
}

func (r *rehearsal) say(ctx context.Context, session string, c agent.Command) (agent.Ack, error) {
	p, err := r.find(session)
	if err != nil {
		return agent.Ack{}, err
	}
	return p.say(ctx, c)
}

// skip lets time go by for one run after the other: they know nothing of each other.
func (r *rehearsal) skip(ctx context.Context, d time.Duration) error {
	for _, p := range r.plays {
		if err := p.settle(ctx); err != nil {
			return err
		}
		if err := p.skip(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// refuseTree is what happens to a run that starts an agent below it.
func refuseTree() {
	panic(agent.Errorf(agent.NotSetUp, "the run starts an agent below it: Temporal's test environment does not hold, cancel and carry over trees as a server does; set testsuite.Options.Server, to a client of devserver.ForTest for example"))
}

// payloadOf is a verb as it crosses Temporal.
func payloadOf(c agent.Command) (converter.RawValue, error) {
	p, err := converter.GetDefaultDataConverter().ToPayload(c)
	return converter.NewRawValue(p), err
}
