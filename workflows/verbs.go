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

// takeUpdates sets an update handler for every verb. Call it in the run's first task.
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

// validate refuses a verb before anything is recorded. It does all that update would do,
// with a copy of the state.
//
// Results of this task that are not stepped yet are ignored: they can only end the run,
// and then the verb has no effect.
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
		// The update's id becomes the verb's id, and the state carries a thousand of
		// those.
		return agent.Errorf(agent.CodeInvalidInput, "%s refused: the update's id has %d characters; at most %d are taken", verb, len(info.ID), agent.MaxIDLength).WithPath("id")
	}
	if !r.takesVerbs() || !r.mayTake(string(verb)) || len(r.queue.signals) > maxSignalsAhead {
		return nil // the run has no log yet, or too many signals wait before it: the handler decides later
	}
	state, moment := r.state, r.moment(ctx)
	moment.MatchBudget = r.tryBudget
	moment.SignalsWaiting = false // the verb is the last of what waits
	// The handler steps the waiting signals first (takeReady), so they count here too.
	for _, s := range r.queue.signals {
		if !r.mayTake(s.name) {
			continue
		}
		if s.decoded != nil {
			return nil // a validator may not record that the run decodes it, so the handler decides
		}
		if in, err := r.readSignal(s); err == nil {
			if next, _, err := loop.Step(state, moment, in); err == nil {
				state = next
			}
		}
	}
	_, _, err := loop.Step(state, moment, r.commandInput(ctx, command))
	// If the budget is exceeded, the verb is recorded, and the handler decides with a
	// budget of its own.
	if err == nil || r.tryBudget.Exceeded() {
		return nil
	}
	return asError(err)
}

// maxSignalsAhead is how many waiting signals the validator steps before it judges an
// update. With more the validator accepts the update, and the handler decides later:
// stepping thousands for each update would take longer than a task may.
const maxSignalsAhead = 100

// update carries out a verb and answers in the same task.
func (r *run) update(ctx workflow.Context, verb agent.Verb, data []byte) (agent.Ack, error) {
	waits := !r.mayTake(string(verb))
	if waits {
		// The machine handles a cancellation of the workflow. On the update's own context
		// it would end this wait with an error that has no code.
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
	// The main coroutine must look again: only it sets timers and finishes.
	defer r.wake()
	// The SDK runs update handlers before the main coroutine. Results, a cancellation and
	// signals of this task go first.
	r.takeReady()
	in := r.commandInput(ctx, command)
	ack, err := r.executeCommand(in)
	if err == nil && ack.V == 0 { // it comes later
		ack, err = r.lateAck(ctx, verb, in.ID)
	}
	cancelled := waits && r.state.Status() == agent.StatusCancelled // a verb that waited for a run that was then cancelled is refused as closed
	s := r.state
	if !cancelled && s.End.Outcome != nil && (errors.Is(err, agent.CodeClosed) || r.over && err != nil) {
		return agent.Ack{V: agent.Version, Session: s.Session, Run: s.Run, Status: s.End.Outcome.Status, Seq: s.Log.Seq, Effect: agent.EffectRunEnded}, nil
	}
	return ack, toTemporalError(err)
}

// lateAck waits for the answer to a verb that has none yet: a resume that waits for hooks, an interrupt that
// waits for the run's own calls. All that have said it under one id wait for the same answer. A run that is
// over refuses it.
func (r *run) lateAck(ctx workflow.Context, verb agent.Verb, id string) (agent.Ack, error) {
	waiting, done := workflow.NewDisconnectedContext(ctx) // as in update
	defer done()
	r.wake() // only the main coroutine carries on
	a := r.lateAcks[id]
	if a == nil {
		a = &loop.Acknowledge{}
		if r.lateAcks == nil {
			r.lateAcks = map[string]*loop.Acknowledge{}
		}
		r.lateAcks[id] = a
	}
	err := workflow.Await(waiting, func() bool { return r.over || a.For != "" })
	switch {
	case err != nil:
		return agent.Ack{}, err
	case a.Err != nil:
		return agent.Ack{}, a.Err
	case a.For == "":
		return agent.Ack{}, agent.Errorf(agent.CodeClosed, "%s refused: the run is over", verb)
	}
	return a.Ack, nil
}

// acknowledge gives the answer to a verb to its senders. A late one is forgotten then, so that the
// next resume under the same id waits for its own.
func (r *run) acknowledge(e loop.Acknowledge) {
	if e.For == "" {
		r.ack, r.refusal = e.Ack, e.Err
		return
	}
	if a := r.lateAcks[e.For]; a != nil {
		*a = e
		delete(r.lateAcks, e.For)
	}
}

// commandInput makes an input of a verb that came by update.
func (r *run) commandInput(ctx workflow.Context, command agent.Command) loop.CommandReceived {
	in := loop.CommandReceived{Command: command, ID: command.Header().ID}
	// Validators run for updates only, so only an update's tokens and policy are checked
	// by now.
	if info := workflow.GetCurrentUpdateInfo(ctx); info != nil {
		if in.ID == "" {
			in.ID = info.ID
		}
		in.PolicyChecked, in.Proofs = true, proofs(command)
	}
	return in
}

// executeCommand steps a verb and returns the machine's answer.
func (r *run) executeCommand(in loop.CommandReceived) (agent.Ack, error) {
	// An effect sets r.ack; a refused verb must not return the previous answer.
	r.ack, r.refusal = agent.Ack{}, nil
	err := r.step(in)
	if err == nil && r.refusal != nil { // a late answer: it is recorded, and refused
		return agent.Ack{}, r.refusal
	}
	return r.ack, err
}

// readSignal makes an input of a signal.
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

// betweenRuns reports whether a signal is one that runs send to each other.
func betweenRuns(name string) bool {
	return name == signals.ChildReport || name == signals.ParentOrder || name == signals.GrantOrder
}

// takeSignals steps the waiting signals in their order. The sender of a signal gets no
// answer, so a refused one is shown in the log. A run that is over refuses all that are
// left.
func (r *run) takeSignals() {
	// With r.continueAsNewErr set, the state is already encoded for the new execution. A step now
	// would be lost.
	for r.continueAsNewErr == nil {
		i := slices.IndexFunc(r.queue.signals, func(s signal) bool { return r.mayTake(s.name) })
		if i < 0 {
			return
		}
		s := r.decode(r.queue.signals[i])
		r.queue.remove(i)
		between := betweenRuns(s.name)
		if between && r.over { // reports to a run that is over
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
			continue // runs repeat what they send; a duplicate is no refusal to show
		}
		refused := loop.CommandRefused{Verb: s.name, Err: bad}
		if said, ok := in.(loop.CommandReceived); ok {
			refused.By = said.Command.Header().By
		}
		r.stepInput(refused)
	}
}

// shownToken is a token, which may be empty, and the claim that it has to prove.
type shownToken struct {
	token string
	claim signals.Claim
}

// shownTokens returns a command's tokens, each with the claim that it has to prove.
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

// checkTokens verifies tokens with this process's keys. It runs in validators only, which
// no replay runs. What it accepts is recorded, so later builds and keys do not matter.
func (r *run) checkTokens(ctx workflow.Context, command agent.Command) *agent.Error {
	for _, t := range shownTokens(command) {
		if t.token == "" {
			continue
		}
		// The claim is built from the state, not from the token: a token for another run
		// fails.
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

// checkPolicy refuses what the policy binds to other principals than the verified ones. A
// worker without a policy uses the one that the run began with. It runs in validators
// only: what it accepts is recorded, and stays accepted when the policy changes.
func (r *run) checkPolicy(command agent.Command) *agent.Error {
	policy := r.shell.Policy.For(r.state.Agent())
	if r.shell.Policy == nil {
		policy = r.state.Policy()
	}
	// The labels and the agent come with the import, and a policy cannot be applied
	// without them.
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

// executionOf returns what tokens are bound to: the run's first execution, also after
// continue-as-new.
//
// A reset repeats the history, with every id in it. Only the new execution's own id
// differs. So after a reset tokens are bound to that, and old tokens are refused. The
// value decides nothing that is recorded, except what the next execution gets.
func executionOf(info *workflow.Info, carried string) string {
	if info.WorkflowExecution.RunID != info.OriginalRunID {
		return info.WorkflowExecution.RunID
	}
	return cmp.Or(carried, info.FirstRunID)
}

// proofs returns whom the tokens of a command name. checkTokens has verified them.
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
