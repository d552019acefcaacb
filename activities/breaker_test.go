package activities_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// provider is a model whose every call is what the test says.
type provider func(ctx context.Context, emit func(model.Delta)) error

func (provider) Info(string) model.Info { return model.Info{Window: 7} }

func (p provider) Generate(ctx context.Context, _ *model.Request, emit func(model.Delta)) (*model.Reply, error) {
	if err := p(ctx, emit); err != nil {
		return nil, err
	}
	return &model.Reply{Finish: model.FinishStop}, nil
}

// line is a model behind a breaker, in a time of the test's own.
type line struct {
	model.Model
	t     *testing.T
	asked int
	does  provider
}

func newLine(t *testing.T) *line {
	l := &line{t: t}
	l.Model = activities.Breaker(provider(func(ctx context.Context, emit func(model.Delta)) error {
		l.asked++
		return l.does(ctx, emit)
	}))
	return l
}

func (l *line) ask(name string) error {
	_, err := l.Generate(l.t.Context(), &model.Request{Model: name}, func(model.Delta) {})
	return err
}

// fails asks n times, each time with a fault of the kind.
func (l *line) fails(kind agent.FaultKind, n int) {
	l.does = func(context.Context, func(model.Delta)) error { return model.Fault(kind, 0, 0, "no") }
	for range n {
		require.EqualError(l.t, l.ask("m"), "no")
	}
}

// refused makes sure that the model is not asked, and tells for how long.
func (l *line) refused() time.Duration {
	before := l.asked
	err := l.ask("m")
	require.Equal(l.t, before, l.asked, "the model was asked")
	var fault *agent.Error
	require.ErrorAs(l.t, err, &fault)
	require.Equal(l.t, agent.FaultOverload, fault.Provider.Kind)
	require.True(l.t, fault.Retryable)
	require.Contains(l.t, fault.Message, "not asked, since it failed 5 times in a row")
	return fault.RetryAfter
}

func (l *line) works() {
	l.does = func(context.Context, func(model.Delta)) error { return nil }
	require.NoError(l.t, l.ask("m"))
}

func pass(d time.Duration) { <-time.After(d) }

func TestACircuitOpensTriesAndCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		require.Equal(t, 7, l.Info("m").Window)
		l.fails(agent.FaultOverload, 2)
		l.fails(agent.FaultTimeout, 2)
		l.fails(agent.FaultTransient, 1)
		require.Equal(t, 15*time.Second, l.refused())
		require.EqualError(t, l.ask("another"), "no", "each model has its own circuit")
		pass(5 * time.Second)
		require.Equal(t, 10*time.Second, l.refused())
		pass(10 * time.Second)
		l.fails(agent.FaultTransient, 1)
		require.Equal(t, 15*time.Second, l.refused(), "one failure of the try is enough")
		pass(15 * time.Second)
		l.works()
		l.fails(agent.FaultTransient, 4)
		l.works()
		l.fails(agent.FaultTransient, 4)
		l.works()
	})
}

func TestWhatOpensNoCircuit(t *testing.T) {
	for _, kind := range []agent.FaultKind{agent.FaultRateLimit, agent.FaultAuth, agent.FaultQuota, agent.FaultBadRequest, agent.FaultContext} {
		newLine(t).fails(kind, 6)
	}
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		l.fails(agent.FaultTransient, 4)
		pass(61 * time.Second)
		l.fails(agent.FaultTransient, 4)
		l.works()
	})
}

// While one call tries, no other is made; its first words let the others through.
func TestOneCallTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		l.fails(agent.FaultOverload, 5)
		pass(15 * time.Second)
		word, end := make(chan struct{}), make(chan struct{})
		var broke error
		l.does = func(_ context.Context, emit func(model.Delta)) error {
			emit(model.Delta{}) // a sign of life that says nothing
			<-word
			emit(model.Delta{Text: "So"})
			<-end
			return model.Fault(agent.FaultTransient, 0, 0, "broke off")
		}
		go func() { broke = l.ask("m") }()
		synctest.Wait()
		require.Zero(t, l.refused())
		close(word)
		synctest.Wait()
		l.works()
		l.fails(agent.FaultTransient, 4)
		close(end)
		synctest.Wait()
		require.EqualError(t, broke, "broke off")
		l.works()
	})
}

// A call that was given up says nothing of the provider, also where it was the try.
func TestACallThatIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t)
		giveUp := func() {
			l.does = func(ctx context.Context, _ func(model.Delta)) error { return ctx.Err() }
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := l.Generate(ctx, &model.Request{Model: "m"}, func(model.Delta) {})
			require.ErrorIs(t, err, context.Canceled)
		}
		for range 6 {
			giveUp()
		}
		l.fails(agent.FaultTransient, 4)
		giveUp()
		l.fails(agent.FaultTransient, 1)
		require.NotZero(t, l.refused())
		pass(15 * time.Second)
		giveUp()
		l.does = func(context.Context, func(model.Delta)) error { panic("ouch") }
		require.Panics(t, func() { _ = l.ask("m") })
		l.works()
	})
}

// A timeout of the runtime's own ends the context with a fault as its cause.
func TestACallThatTakesTooLong(t *testing.T) {
	l := newLine(t)
	l.does = func(ctx context.Context, _ func(model.Delta)) error { return errors.Join(ctx.Err()) }
	for range 5 {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(model.Fault(agent.FaultTimeout, 0, 0, "silent"))
		_, err := l.Generate(ctx, &model.Request{Model: "m"}, func(model.Delta) {})
		require.ErrorIs(t, err, context.Canceled)
	}
	l.refused()
}
