package loop

import (
	"fmt"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// resumeByHooks carries out a resume, or keeps it until the hooks before a resume were asked, and the newer
// instructions that it names have come. Whoever sent it gets the answer then. A run that does not rest yet
// has no hook to ask: the resume only withdraws what would have suspended it.
func (s *step) resumeByHooks(o agent.ResumeCommand, in CommandReceived) error {
	hooks := len(s.hooksAt(agent.PointBeforeResume))
	switch {
	case o.Refresh:
		if err := s.mayRefresh(); err != nil {
			return err
		}
	case hooks == 0 && s.SuspensionHooks.Resume == nil || !s.Suspensions.atRest():
		return s.resume(o)
	}
	if p := s.SuspensionHooks.Resume; p != nil {
		if in.ID != "" && p.ID == in.ID && p.Digest == s.verbDigest {
			s.SuspensionHooks.joinResume(in.PolicyChecked)
			s.answerLater(in)
			return nil
		}
		return s.refuseAs(agent.CodeStale, "", "another resume waits for hooks or for instructions; look again when it is decided")
	}
	// What would be refused anyway is refused at once, and no hook is asked.
	trial := newStep(s.State, s.Moment)
	if err := trial.resume(o); err != nil {
		return err
	}
	o.Token = "" // it was checked, and the state is shown
	s.SuspensionHooks.keepResume(PendingResume{Command: o, ID: in.ID, Digest: s.verbDigest, Signal: s.bySignal, Token: s.answerLater(in)})
	s.withdrawSuspended() // something will be in flight
	if hooks == 0 {
		s.fetchInstructions()
	}
	return nil
}

// answerLater leaves the verb of this step without an answer, and returns its token. The token is used
// when the resume is carried out: one that a hook refuses can be said again with it.
func (s *step) answerLater(in CommandReceived) UsedToken {
	s.verb = ""
	return s.Verbs.releaseToken(in.proof("").Nonce)
}

// resumeJudged takes what a hook says of the resume that waits. failed means that it could not be asked.
func (s *step) resumeJudged(k agent.Check, v agent.Verdict, failed bool) {
	switch {
	case s.SuspensionHooks.Resume == nil || !s.isAtRest(): // the rules refuse it
	case v.Decision == agent.DecisionVeto:
		s.refuseResume(s.SuspensionHooks.takeResume(), s.refuseAs(agent.CodeDenied, "", "the hook %s did not allow it: %s", k.Name, hookReason(k, v)))
		// A veto alone is about this resume. If it released the run to the parent's model, which asks no hook,
		// anybody who may try a resume could get past the hook.
		if failed || v.ToParent || s.Revision < vetoStaysSince {
			s.ownerFails(agent.CodeDenied, fmt.Sprintf("the hook %s did not allow a resume: %s", k.Name, hookReason(k, v)))
		}
	case s.SuspensionHooks.allowResume(v.Text, len(s.hooksAt(agent.PointBeforeResume))):
		if s.SuspensionHooks.Resume.Command.Refresh {
			s.fetchInstructions()
			return
		}
		s.resumeAllowed(nil)
	}
}

// resumeAllowed carries out the resume that all hooks have allowed. It is checked once more: other
// things have come meanwhile, and a hook may have changed its words. fresh are the agent's newest
// instructions; nil keeps those that the run has.
func (s *step) resumeAllowed(fresh *agent.InstructionsChange) {
	p := s.SuspensionHooks.takeResume()
	s.verb, s.verbID, s.verbDigest, s.verbEffect = agent.VerbResume, p.ID, p.Digest, agent.EffectAccepted
	if !p.Signal {
		s.answersFor = p.ID
	}
	err := s.useToken(Proof{Principal: p.Command.By, Nonce: p.Token.Nonce, Expires: time.Unix(p.Token.Until, 0)}, agent.VerbResume)
	if err == nil {
		if err = s.resume(p.Command); err != nil {
			s.Verbs.releaseToken(p.Token.Nonce)
		}
	}
	switch {
	case err != nil:
		s.verb = ""
		s.refuseResume(p, asError(err))
	case fresh != nil:
		s.takeInstructions(fresh)
	}
}

// withdrawResume refuses the resume that waits, because something else came first.
func (s *step) withdrawResume() {
	p := s.SuspensionHooks.takeResume()
	switch {
	case s.outcomeDecided():
		s.refuseResume(p, s.refuseAs(agent.CodeClosed, "", "the run is at its end"))
	case s.End.Stopping != nil:
		s.refuseResume(p, s.refuseAs(agent.CodeStale, "", "%s", s.End.doing()))
	case !s.Suspensions.atRest():
		s.refuseResume(p, s.refuseAs(agent.CodeNotSuspended, "", "the run went on by itself while the resume waited; it is %s", s.Status()))
	default:
		s.refuseResume(p, s.refuseAs(agent.CodeStale, "", "the run was held again while the resume waited"))
	}
}

// refuseResume answers a resume that waited for its hooks. The sender of a signal gets no answer, so
// its refusal is shown in the log.
func (s *step) refuseResume(p PendingResume, err *agent.Error) {
	e := *err
	e.Message = string(agent.VerbResume) + " refused: " + e.Message
	if !p.Signal {
		s.do(Acknowledge{For: p.ID, Err: &e})
		return
	}
	s.showRefused(string(agent.VerbResume), p.Command.By, e)
}
