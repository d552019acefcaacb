package loop

import (
	"regexp"

	"github.com/fermata-agents/fermata/agent"
)

// maxUnstored is how much the log of a stateless run may count, in bytes (see weight). All of it is in
// the state, and each worker that makes a call has to fetch it.
const maxUnstored = 1 << 20

// madeUp matches the ids that Temporal's clients and ours make up for a workflow that got none.
var madeUp = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// needsSession returns the error of a start that needs a session, if the agent is stateless.
func (s *step) needsSession(spec *agent.Spec) *agent.Error {
	if spec == nil || !spec.Stateless {
		return nil
	}
	start := s.Origin.Start
	refused := func(path, what string) *agent.Error {
		return agent.Errorf(agent.CodeInvalidInput, "start refused: agent %s is stateless, and keeps nothing that %s", s.agent(), what).WithPath(path)
	}
	switch {
	case s.Parent.Start != nil:
		return refused("agent", "a run above could read; call an agent that is not stateless")
	case start.From != nil || start.Import != "":
		return refused("from", "a run could continue from; start it anew")
	case start.After != "" || !madeUp.MatchString(s.Session):
		return refused("session", "a session could have; leave the session out")
	case start.Carry != "" && start.Carry != agent.CarryInherit: // what a command says that keeps all
		return refused("carry", "could be carried over; leave carry out")
	case len(s.Origin.startMessage().Files()) > 0:
		return refused("input.parts", "has files; send text alone")
	}
	return nil
}

// outgrown returns the error of a stateless run whose log, or whose history, has no more room; nil for
// other runs, which store their log and continue as new.
func (s *step) outgrown() *agent.Error {
	if !s.Log.Unstored || s.Phase != RunActive || s.inFlight() || s.End.Stopping != nil {
		return nil
	}
	if s.Log.Bytes > maxUnstored || s.NearHistoryLimit {
		return agent.Errorf(agent.CodeTooLarge, "the log of a stateless run may have %d bytes, and its history %d events or %d MB: ask for less in one run, or let the agent keep sessions (leave stateless out)", maxUnstored, 40_000, 30)
	}
	return nil
}
