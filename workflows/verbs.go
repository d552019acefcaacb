package workflows

import (
	"cmp"
	"errors"
	"slices"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/signals"
)

func dataOf(p *commonpb.Payload) ([]byte, *agent.Error) {
	if p == nil {
		return nil, nil
	}
	return durable.Bytes(converter.NewRawValue(p))
}

// takeUpdates lets every verb be said by update, from the run's first task on.
func (r *run) takeUpdates(ctx workflow.Context) error {
	for _, verb := range signals.Verbs {
		err := workflow.SetUpdateHandlerWithOptions(ctx, string(verb), func(ctx workflow.Context, raw converter.RawValue) (agent.Ack, error) {
			data, bad := durable.Bytes(raw)
			if bad != nil {
				return agent.Ack{}, durable.Failure(bad, nil)
			}
			ack, err := r.update(ctx, verb, data)
			r.auditRefusal(verb, data, err)
			return ack, err
		}, workflow.UpdateHandlerOptions{Validator: func(ctx workflow.Context, raw converter.RawValue) error {
			data, bad := durable.Bytes(raw)
			if bad != nil {
				return durable.Rejection(r.audited(ctx, verb, nil, durable.Within(string(verb)+" refused", bad)))
			}
			return durable.Rejection(r.audited(ctx, verb, data, r.validate(ctx, verb, data)))
		}})
		if err != nil {
			return err
		}
	}
	return nil
}

// validate refuses a verb before anything is recorded: it does all that update
// would do, to a copy of the state. What became ready in this task and is not
// stepped yet can only end the run: then the verb is moot.
func (r *run) validate(ctx workflow.Context, verb agent.Verb, data []byte) *agent.Error {
	command, bad := signals.DecodeAt(r.revision, verb, data)
	if bad == nil {
		bad = r.checkTokens(ctx, command)
	}
	if bad == nil {
		bad = r.checkPolicy(command)
	}
	if bad != nil {
		return bad
	}
	if info := workflow.GetCurrentUpdateInfo(ctx); info != nil && command.Header().ID == "" && len(info.ID) > agent.MaxIDLength {
		// It is the verb's id then, and a thousand of those are carried along.
		return agent.Errorf(agent.CodeInvalidInput, "%s refused: the update's id has %d characters; at most %d are taken", verb, len(info.ID), agent.MaxIDLength).WithPath("id")
	}
	if !r.opened() || !r.mayTake(string(verb)) || len(r.queue.signals) > maxSignalsAhead {
		return nil // nobody knows yet what the run is made of, or will have heard
	}
	state, moment := r.state, r.moment(ctx)
	moment.MatchBudget = r.tryBudget
	for _, s := range r.queue.signals {
		if !r.mayTake(s.name) {
			continue
		}
		if in, err := r.readSignal(s); err == nil {
			if next, _, err := loop.Step(state, moment, in); err == nil {
				state = next
			}
		}
	}
	_, _, err := loop.Step(state, moment, r.commandInput(ctx, command))
	if err == nil || r.tryBudget.Exceeded() {
		return nil // or too much was tried in this task: it is recorded, and weighed then
	}
	return asError(err)
}

// maxSignalsAhead is how many signals that wait are tried out before a verb that comes as an
// update is weighed. One behind more of them is recorded, and weighed when it has heard
// them: trying thousands, for each update anew, takes longer than a task may.
const maxSignalsAhead = 100

// update obeys a verb and answers in the same task.
func (r *run) update(ctx workflow.Context, verb agent.Verb, data []byte) (agent.Ack, error) {
	waits := !r.mayTake(string(verb))
	if waits {
		// A cancellation of the workflow is the machine's: it must not end the wait, and would
		// answer without a code.
		waiting, done := workflow.NewDisconnectedContext(ctx)
		defer done()
		if err := workflow.Await(waiting, func() bool { return r.over || r.mayTake(string(verb)) }); err != nil {
			return agent.Ack{}, err
		}
	}
	command, bad := signals.DecodeAt(r.revision, verb, data)
	if bad != nil {
		return agent.Ack{}, durable.Failure(bad, nil)
	}
	defer r.wake()
	r.takeReady()
	ack, err := r.executeCommand(r.commandInput(ctx, command))
	cancelled := waits && r.state.Status() == agent.StatusCancelled // it did not end by itself: closed
	if !cancelled && (errors.Is(err, agent.CodeClosed) || r.over && err != nil) {
		s := r.state
		return agent.Ack{V: agent.Version, Session: s.Session, Run: s.Run, Status: s.End.Outcome.Status, Seq: s.Log.Seq, Effect: agent.EffectRunEnded}, nil
	}
	return ack, toTemporalError(err)
}

// commandInput makes a verb the machine's input.
func (r *run) commandInput(ctx workflow.Context, command agent.Command) loop.CommandReceived {
	in := loop.CommandReceived{Command: command, ID: command.Header().ID}
	if info := workflow.GetCurrentUpdateInfo(ctx); info != nil {
		if in.ID == "" {
			in.ID = info.ID
		}
		in.PolicyChecked, in.Proofs = true, proofs(command)
	}
	return in
}

// executeCommand hands a verb to the machine and returns its answer.
func (r *run) executeCommand(in loop.CommandReceived) (agent.Ack, error) {
	r.ack = agent.Ack{}
	err := r.step(in)
	return r.ack, err
}

// readSignal makes a signal the machine's input.
func (r *run) readSignal(s signal) (loop.Input, *agent.Error) {
	if s.bad != nil {
		return nil, durable.Within(s.name+" refused", s.bad)
	}
	if betweenRuns(s.name) {
		return readTreeSignal(r.revision, s)
	}
	command, err := signals.DecodeAt(r.revision, agent.Verb(s.name), s.data)
	if err != nil {
		return nil, err
	}
	return loop.CommandReceived{Command: command, ID: command.Header().ID}, nil
}

// betweenRuns reports whether a signal is what one run says to another.
func betweenRuns(name string) bool {
	return name == signals.ChildReport || name == signals.ParentOrder || name == signals.GrantOrder
}

// takeSignals takes the signals that have come, in their order. One that has to be
// refused is shown, since it can't be told: by a run that is over, all that it had no
// time to hear.
func (r *run) takeSignals() {
	for r.next == nil {
		i := slices.IndexFunc(r.queue.signals, func(s signal) bool { return r.mayTake(s.name) })
		if i < 0 {
			return
		}
		s := r.queue.signals[i]
		r.queue.remove(i)
		between := betweenRuns(s.name)
		if between && r.over {
			continue
		}
		r.auditSignal(s, between)
		in, bad := r.readSignal(s)
		if bad == nil {
			err := r.step(in)
			if err == nil {
				continue
			}
			bad = asError(err)
		}
		if in != nil && bad.Code == agent.CodeStale && between {
			continue // runs tell each other more than once
		}
		r.stepInput(loop.CommandRefused{Verb: s.name, Err: bad})
	}
}

// shownToken is a token, which may be empty, and what it has to be good for.
type shownToken struct {
	token string
	claim signals.Claim
}

// shownTokens lists what a command says, each with what proves who says it.
func shownTokens(command agent.Command) (list []shownToken) {
	add := func(request string, c agent.Command) {
		list = append(list, shownToken{c.Header().Token, signals.ClaimFor(request, c)})
	}
	switch c := command.(type) {
	case agent.AnswerCommand:
		add(c.Request, c)
	case agent.ApproveCommand:
		add(c.Request, c)
	case agent.RejectCommand:
		add(c.Request, c)
	case agent.AnswersCommand:
		for _, a := range c.Answers {
			switch {
			case a.Answer != nil:
				add(a.Request, *a.Answer)
			case a.Approve != nil:
				add(a.Request, *a.Approve)
			case a.Reject != nil:
				add(a.Request, *a.Reject)
			}
		}
	default:
		add("", c)
	}
	return list
}

// checkTokens verifies tokens with this process's keys. It runs in validators
// only, which no replay runs: what it lets through is recorded.
func (r *run) checkTokens(ctx workflow.Context, command agent.Command) *agent.Error {
	for _, t := range shownTokens(command) {
		if t.token == "" {
			continue
		}
		t.claim.Session, t.claim.Execution = r.state.Session, r.execution
		if t.claim.Verb == agent.VerbApprove && t.claim.Digest == "" {
			t.claim.Digest = r.state.DigestOf(t.claim.Request)
		}
		if _, err := r.shell.Keys.Verify(t.token, t.claim, workflow.Now(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// checkPolicy refuses what this worker's policy binds to others than those whose tokens were
// verified; where it has none, that with which the run began counts. It runs in validators
// only: what it lets through is recorded, and stays so when the policy changes.
func (r *run) checkPolicy(command agent.Command) *agent.Error {
	policy := r.shell.Policy.For(r.state.Agent())
	if r.shell.Policy == nil {
		policy = r.state.Policy()
	}
	if len(policy) > 0 && r.state.AwaitsImport() {
		e := agent.Errorf(agent.CodeDenied, "the run is being imported, and nobody knows yet to whom a policy binds what is said to it: say it again in a moment")
		e.Retryable = true
		return e
	}
	for _, t := range shownTokens(command) {
		if err := policy.Refuses(r.state.Labels(), t.claim.Verb, signals.ReadClaim(t.token).Principal); err != nil {
			return durable.Within(string(command.Verb())+" refused", err)
		}
	}
	return nil
}

// executionOf is what tokens are bound to. A reset gives a run another execution and leaves
// the history as it was, so that everything in it comes again as it did, and with it
// whatever a token could be bound to except for the execution's own id. One that nobody reset
// is bound to what the run's first execution is, which all that go on with it have in
// common. The value decides nothing that is recorded, except for what the next execution gets.
func executionOf(info *workflow.Info, handed string) string {
	if info.WorkflowExecution.RunID != info.OriginalRunID {
		return info.WorkflowExecution.RunID
	}
	return cmp.Or(handed, info.FirstRunID)
}

// proofs reads who the tokens of a command name: they were verified before.
func proofs(command agent.Command) (list []loop.Proof) {
	for _, t := range shownTokens(command) {
		if t.token == "" {
			continue
		}
		is := signals.ReadClaim(t.token)
		list = append(list, loop.Proof{Request: t.claim.Request, Principal: is.Principal, Nonce: is.Nonce, Expires: is.Expires})
	}
	return list
}

func asError(err error) *agent.Error {
	var e *agent.Error
	if errors.As(err, &e) {
		return e
	}
	return agent.Errorf(agent.CodeInternal, "%w", err)
}

func toTemporalError(err error) error {
	if err == nil {
		return nil
	}
	return durable.Failure(asError(err), nil)
}
