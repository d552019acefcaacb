package testsuite

import (
	"context"
	"errors"
	"fmt"
	"time"

	sdktest "go.temporal.io/sdk/testsuite"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/signals"
)

// send sends a verb and waits for its answer. It refuses verbs that cancel calls in flight, because
// the environment would forget those calls instead of cancelling them.
func (p *testEnvRun) send(ctx context.Context, c agent.Command) (ack agent.Ack, err error) {
	answered := make(chan struct{})
	answer := func(a agent.Ack, e error) {
		ack, err = a, e
		close(answered)
	}
	done, stop := p.do(ctx, true, func() {
		// Checked within the environment: nothing can start between this and the verb.
		if st, err := ask(p.env, signals.Status.Name); givesUp(c) && err == nil && len(st.InFlight) > 0 {
			answer(agent.Ack{}, agent.Errorf(agent.CodeNotSetUp, "%s while %s is in flight: Temporal's test environment does not cancel calls as a server does; set testsuite.Options.Server, for example to a client of devserver.ForTest", c.Verb(), st.InFlight[0].Name))
			p.lookSoon(p.env)
		} else {
			p.update(c, answer)
		}
	})
	if stop != nil {
		return agent.Ack{}, stop
	}
	if done {
		select {
		case <-answered:
			return ack, err
		case <-p.over:
		case <-ctx.Done():
			return agent.Ack{}, ctx.Err()
		}
	}
	// The run has ended, maybe with this verb as its last one.
	select {
	case <-answered: // with its end
		return ack, err
	default:
		return agent.Ack{}, p.closed(c)
	}
}

// closed returns the refusal of a verb to a run that has ended.
func (p *testEnvRun) closed(c agent.Command) error {
	e := agent.Errorf(agent.CodeClosed, "%s refused: the run of session %s has ended", c.Verb(), p.session)
	e.Session, e.Run = p.session, p.run
	if o := p.result(); o != nil {
		e.Status = o.Status
	}
	return e
}

// givesUp reports whether a verb cancels calls in flight.
func givesUp(c agent.Command) bool {
	send, is := c.(agent.SendCommand)
	return c.Verb().Strength() >= agent.VerbInterrupt.Strength() || is && send.Mode == agent.SendInterrupt
}

// update sends a verb. answer is called within the environment.
func (p *testEnvRun) update(c agent.Command, answer func(agent.Ack, error)) {
	raw, err := payloadOf(c)
	if err != nil {
		answer(agent.Ack{}, err)
		return
	}
	// Counted, because the environment must not wait for the test before this is answered.
	p.unanswered++
	answered := func(ack agent.Ack, err error) {
		p.unanswered--
		answer(ack, asArrived(err))
		p.lookSoon(p.env)
	}
	p.env.UpdateWorkflow(string(c.Verb()), "", &sdktest.TestUpdateCallback{
		OnAccept: func() {},
		OnReject: func(err error) { answered(agent.Ack{}, err) },
		OnComplete: func(result any, err error) {
			ack, ok := result.(agent.Ack)
			// The SDK passes the value itself and not its encoding.
			if err == nil && !ok {
				err = fmt.Errorf("%s was answered by a %T", c.Verb(), result)
			}
			answered(ack, err)
		},
	}, raw)
}

// asArrived returns an error as a client would get it; nil for none.
func asArrived(err error) error {
	if e := durable.FromTemporal(err); e != nil {
		return e
	}
	return nil
}

// skip lets time pass.
func (p *testEnvRun) skip(ctx context.Context, d time.Duration) error {
	// Nothing can happen in an ended run, so only its clock moves.
	if p.ended() {
		p.set(func() { p.clock = p.clock.Add(d) })
		return nil
	}
	target := p.now().Add(d)
	if _, err := p.do(ctx, true, func() {
		p.set(func() { p.until = target })
		p.env.RegisterDelayedCallback(p.arrive, d)
	}); err != nil {
		return err
	}
	// Wakes the wait below, which can't select on a context.
	defer context.AfterFunc(ctx, func() { p.set(func() {}) })()
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.until.IsZero() && p.err == nil && p.outcome == nil && ctx.Err() == nil {
		p.changed.Wait()
	}
	p.reported = true
	return errors.Join(p.err, ctx.Err())
}
