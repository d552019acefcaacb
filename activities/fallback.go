package activities

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/wire"
	"github.com/fermata-agents/fermata/model"
)

// askModels asks the run's model, and if it fails its fallbacks, all within one attempt.
// For a call that was cancelled, heard is the text so far.
func (d *Activities) askModels(ctx context.Context, spec *agent.Spec, messages []agent.Message, in ModelInput, t *charges) (reply wire.Reply, heard string, err error) {
	if in.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, time.Duration(in.Timeout), errWithin)
		defer stop()
	}
	// Before the first request, and once for all models of the attempt.
	if err := d.DailyBudget.begin(ctx); err != nil {
		return reply, "", err
	}
	defer func() { d.DailyBudget.end(t.charged()) }()
	attempt := in.attempt(ctx)
	var failed failures
	for i, name := range spec.Models() {
		if i < in.Skip { // it refused in an earlier turn, and the agent's recovery names fallback
			continue
		}
		m, err := d.Model(name)
		if err != nil && i == 0 {
			return reply, "", err
		}
		if err != nil {
			failed = append(failed, failure{model: name, fault: faultOf(err)})
			continue // the run is older than this build, which no longer has the model
		}
		window := m.Info(m.Name).Window
		if failed.tooLongFor(window) {
			continue
		}
		d.restart(in, attempt > 1 || i > 0)
		fallback, price := "", m.Info(m.Name).Price
		if i > 0 {
			fallback = name
		} else {
			t.price = price
		}
		reply, heard, err = d.ask(ctx, m, spec, messages, fallback, in, t)
		if err != nil && !t.inCall() { // the store is away, which is no failure of the model
			return reply, "", err
		}
		if i > 0 {
			reply.Model, reply.Cost = name, price.Of(reply.Usage)
		}
		if err == nil {
			d.charge(ctx, &reply, price, in, t)
			return reply, "", nil
		}
		t.failed(err, fallback, price)
		// Nobody waits any more: no fallback is asked.
		if ctx.Err() != nil {
			return reply, heard, givenUp(ctx, err)
		}
		failed = append(failed, failure{model: name, window: window, fault: faultOf(err)})
		d.warn(ctx, failed[len(failed)-1], in)
		if !failed.othersMay(attempt, spec) {
			break
		}
	}
	return reply, heard, failed.fault(attempt, spec, in)
}

// ask makes a request of a model, and once more without files if it refuses those. If it can't read
// the files, it makes none.
func (d *Activities) ask(ctx context.Context, m Model, spec *agent.Spec, messages []agent.Message, fallback string, in ModelInput, t *charges) (reply wire.Reply, heard string, err error) {
	shown, files, err := d.filesFor(ctx, m.Info(m.Name), messages)
	if err != nil {
		return reply, "", err
	}
	t.startCall(fallback, shown)
	reply, heard, err = d.generate(ctx, m, spec, shown, files, in, t)
	if len(files) == 0 || !refused(err) || ctx.Err() != nil {
		return reply, heard, err
	}
	t.failed(err, fallback, m.Info(m.Name).Price)
	shown = withoutFiles(messages)
	t.startCall(fallback, shown)
	return d.generate(ctx, m, spec, shown, nil, in, t)
}

// restart tells readers to drop the deltas of requests that failed: they were shown.
func (d *Activities) restart(in ModelInput, failed bool) {
	if in.shown() && failed {
		d.publish(liveEvent{Session: in.Session, Run: in.Run, Turn: in.Turn, Restart: true})
	}
}

// charge ends a request with the usage of its reply, or with an estimate if the provider
// reports none.
func (d *Activities) charge(ctx context.Context, reply *wire.Reply, price agent.Price, in ModelInput, t *charges) {
	if reply.Usage != (agent.Usage{}) {
		t.endCall(&agent.Charge{Model: reply.Model, Usage: reply.Usage, Cost: reply.Cost})
		return
	}
	used := t.endCallEstimated(agent.Message{Parts: reply.Parts}.Size(), price)
	d.Logger.WarnContext(ctx, "the provider did not report the usage of a call; it is estimated", "session", in.Session, "run", in.Run,
		"turn", in.Turn, "tokens", used.Total())
}

// errWithin ends a call that has less time than a model may take. That it was too slow
// does not count against the model.
var errWithin = errors.New("there was no more time")

// givenUp returns the failure of a call whose context ended, if neither a hold nor the
// run ended it.
func givenUp(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errWithin) {
		return model.Fault(agent.FaultTimeout, 0, 0, errWithin.Error())
	}
	return &agent.Error{Code: agent.CodeProviderError, Message: "the worker shut down during the call", Retryable: true, Err: err}
}

// failure is the failure of one model in an attempt.
type failure struct {
	model  string
	window int
	fault  *agent.Error
}

// failures are those of one attempt, in the order in which the models were asked.
type failures []failure

// faultOf returns any error as a provider's fault. An unknown error counts as transient.
func faultOf(err error) *agent.Error {
	var e *agent.Error
	if !errors.As(err, &e) {
		e = model.Fault(agent.FaultTransient, 0, 0, err.Error())
	}
	whole := *e
	if whole.Provider == nil {
		whole.Provider = &agent.ProviderFault{Kind: agent.FaultTransient}
	}
	return &whole
}

// tooLongFor reports whether the conversation was too long for a model with a window of
// at least this size. An unknown window does not count as larger.
func (fs failures) tooLongFor(window int) bool {
	for _, f := range fs {
		if f.fault.Provider.Kind == agent.FaultContext && (f.window == 0 || window <= f.window) {
			return true
		}
	}
	return false
}

// othersMay reports whether the next model is asked at once. A failure that may pass is
// retried first, as often as the Spec says. Two are not waited for: an open circuit, and
// a provider that asks for more time than a call may take. A bad request is bad for every
// model.
func (fs failures) othersMay(attempt int, spec *agent.Spec) bool {
	f := fs[len(fs)-1].fault
	if f.Retryable {
		return attempt >= spec.ModelAttempts || errors.Is(f, errOpen) || f.RetryAfter > time.Duration(spec.ModelTimeout)
	}
	switch f.Provider.Kind {
	case agent.FaultAuth, agent.FaultQuota, agent.FaultContext:
		return true
	}
	return false
}

// fault returns the failure of the whole attempt: the first model's, with the others'
// messages. It is retryable if one of them is. If no model was asked at all, it stays
// retryable for twice as many attempts: a circuit that opens and closes must not end runs
// that would have succeeded.
func (fs failures) fault(attempt int, spec *agent.Spec, in ModelInput) error {
	whole := *fs[0].fault
	provider := *whole.Provider
	provider.Model, provider.AfterToolResult = fs[0].model, in.AfterToolResult
	whole.Provider, whole.Retryable, whole.RetryAfter = &provider, false, 0
	said := make([]string, len(fs))
	open := true
	for i, f := range fs {
		said[i] = f.model + ": " + f.fault.Message
		if f.fault.Retryable && f.fault.RetryAfter > delayFrom {
			said[i] += "; it asked to wait " + f.fault.RetryAfter.Round(time.Second).String()
		}
		open = open && errors.Is(f.fault, errOpen)
		if !f.fault.Retryable {
			continue
		}
		// The shortest wait: one model that answers is enough.
		if !whole.Retryable || f.fault.RetryAfter < whole.RetryAfter {
			whole.RetryAfter = f.fault.RetryAfter
		}
		whole.Retryable = true
	}
	attempts := spec.ModelAttempts
	if open && in.Summary == "" {
		attempts *= 2
	}
	whole.Message = strings.Join(said, "; ")
	whole.Retryable = whole.Retryable && attempt < attempts
	whole.RetryAfter = max(min(whole.RetryAfter, time.Duration(spec.ModelTimeout)), backoff(attempt))
	return &whole
}

// delayFrom is the longest wait between attempts that is left to the server, which shows
// it to nobody. For a longer one the run waits itself.
const delayFrom = 30 * time.Second

// delayed hands a long wait over to the run, as a [durable.Delayed].
func delayed(ctx context.Context, err error) error {
	var e *agent.Error
	if !errors.As(err, &e) || !e.Retryable || e.RetryAfter <= delayFrom {
		return err
	}
	whole := *e
	whole.Message = err.Error()
	tried := int(activity.GetInfo(ctx).Attempt)
	if errors.Is(err, errDaily) { // no provider was asked, so this attempt does not count
		tried-- // no provider was asked
	}
	return durable.Delayed{Tried: tried, Wait: e.RetryAfter, Err: &whole}
}

func (d *Activities) warn(ctx context.Context, f failure, in ModelInput) {
	d.Logger.WarnContext(ctx, "model call failed", "session", in.Session, "run", in.Run, "turn", in.Turn,
		"model", f.model, "kind", string(f.fault.Provider.Kind), "attempt", in.attempt(ctx), "error", f.fault.Message)
}

// backoff returns how long to wait after a provider's failure that names no time: 2s, 4s,
// 8s … 30s.
func backoff(attempt int) time.Duration {
	return min(time.Second<<min(attempt, 10), 30*time.Second)
}
