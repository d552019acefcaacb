package e2e

import (
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/observe"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/worker"
)

// What a policy binds is said by its principals alone, who prove it, once a token. Signals
// prove nothing. A run keeps what it began with where a worker has no policy, and one that
// has another holds it to that.
func TestAPolicySaysWhoMaySayWhat(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	t.Cleanup(func() { s.replay(t) })
	key := newSigner("k1")
	works := func(policy agent.Policy) *worker.Worker {
		w, err := worker.New(s.temporal, &worker.Options{
			TaskQueue: s.queue, Store: s.dir, Logger: zap.NewNop(), Temporal: stopsSoon, ApprovalKeys: key.Keys(), Policy: policy,
			Agents: []agent.Definition{{Name: "tester", Model: "script", Tools: []string{agent.AskUserTool}}},
			Models: map[string]model.Model{"script": testsuite.NewScript(testsuite.Reply{Calls: call(agent.AskUserTool, map[string]any{"question": "Where to?"})})},
		})
		require.NoError(t, err)
		require.NoError(t, w.Start(t.Context()))
		t.Cleanup(w.Stop)
		return w
	}
	bound := func(who ...string) agent.Policy {
		return agent.Policy{{Verbs: []agent.Verb{agent.VerbPause, agent.VerbResume, agent.VerbAnswer}, Agents: []string{"test*"}, Principals: who}}
	}
	w := works(bound("ana"))
	run := s.begin(t, "go", nil)
	q := s.suspended(t, run).Requests[0]
	token := func(who string, verb agent.Verb, request string) string {
		claim, err := s.TokenClaim(t.Context(), run.Session, verb, request, who)
		require.NoError(t, err)
		claim.Expires = time.Now().Add(time.Hour)
		text, err := key.Mint(claim)
		require.NoError(t, err)
		return text
	}
	say := func(c agent.Command) error {
		_, err := signals.Update(t.Context(), s.temporal, run.Session, c)
		return err
	}
	pause := token("ana", agent.VerbPause, "")
	for name, c := range map[string]agent.Command{
		"no token": agent.PauseCommand{CommandHeader: agent.CommandHeader{By: "ana"}}, "another principal's": agent.PauseCommand{CommandHeader: agent.CommandHeader{Token: token("bo", agent.VerbPause, "")}},
		"an answer": agent.AnswerCommand{Request: q.ID, Text: "Rome"},
		"several":   agent.AnswersCommand{Answers: []agent.AnswerTo{{Request: q.ID, Answer: &agent.AnswerCommand{Request: q.ID, Text: "Rome"}}}},
	} {
		require.ErrorIs(t, say(c), agent.CodeDenied, name)
	}
	require.ErrorIs(t, say(agent.ResumeCommand{CommandHeader: agent.CommandHeader{Token: pause}}), agent.CodeBadSignature, "it is for another verb")
	require.NoError(t, s.temporal.SignalWorkflow(t.Context(), run.Session, "", string(agent.VerbPause), agent.PauseCommand{CommandHeader: agent.CommandHeader{Token: pause}}))
	require.Eventually(t, func() bool {
		st, err := run.Status(t.Context())
		return err == nil && len(st.Refused) == 1 && st.Refused[0].Error.Code == agent.CodeDenied
	}, patience, 10*time.Millisecond, "a signal proves nothing")
	require.Empty(t, s.suspended(t, run).Holds)

	require.NoError(t, say(agent.PauseCommand{CommandHeader: agent.CommandHeader{ID: "v-1", By: "somebody", Token: pause}}))
	require.NoError(t, say(agent.PauseCommand{CommandHeader: agent.CommandHeader{ID: "v-1", By: "somebody", Token: pause}}), "the same, said again")
	st, err := run.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, "ana", st.Suspension.Holds[0].By, "what is proved is recorded, and not what is claimed")
	require.NoError(t, say(agent.ResumeCommand{CommandHeader: agent.CommandHeader{Token: token("ana", agent.VerbResume, "")}}))
	require.ErrorIs(t, say(agent.PauseCommand{CommandHeader: agent.CommandHeader{Token: pause}}), agent.CodeUsed, "whoever reads the history can't say it again")

	w.Stop()
	w = works(nil)
	require.ErrorIs(t, say(agent.PauseCommand{}), agent.CodeDenied, "the run began with a policy")
	w.Stop()
	works(bound("bo"))
	require.ErrorIs(t, say(agent.PauseCommand{CommandHeader: agent.CommandHeader{Token: token("ana", agent.VerbPause, "")}}), agent.CodeDenied, "the policy has changed")
	require.NoError(t, say(agent.PauseCommand{CommandHeader: agent.CommandHeader{Token: token("bo", agent.VerbPause, "")}}))
	require.NoError(t, say(agent.StopCommand{}), "which nothing binds")
	require.Equal(t, agent.StatusStopped, s.rest(t, s.ended(t, run)).Status)
}

// tellings are what an audit heard of verbs, by their ids.
type tellings struct {
	mu    sync.Mutex
	heard map[string][]agent.Code
}

func (t *tellings) Command(told observe.RunCommand) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var said struct{ ID string }
	_ = json.Unmarshal(told.Data, &said)
	t.heard[said.ID] = append(t.heard[said.ID], agent.CodeOf(told.Refused))
	return nil
}

func (t *tellings) Event(observe.RunEvent) error { return nil }

// A verb with an id that is refused is in the audit once: nobody says it a second time.
func TestARefusalIsAuditedOnce(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	heard := &tellings{heard: map[string][]agent.Code{}}
	w, err := worker.New(s.temporal, &worker.Options{
		TaskQueue: s.queue, Store: s.dir, Logger: zap.NewNop(), Temporal: stopsSoon, ApprovalKeys: newSigner("k1").Keys(), Audit: heard,
		Policy: agent.Policy{{Verbs: []agent.Verb{agent.VerbPause, agent.VerbStop}, Principals: []string{}}},
		Agents: []agent.Definition{{Name: "tester", Model: "script", Tools: []string{agent.AskUserTool}}},
		Models: map[string]model.Model{"script": testsuite.NewScript(testsuite.Reply{Calls: call(agent.AskUserTool, map[string]any{"question": "Where to?"})})},
	})
	require.NoError(t, err)
	require.NoError(t, w.Start(t.Context()))
	t.Cleanup(w.Stop)
	run := s.begin(t, "go", nil)
	s.suspended(t, run)
	say := func(c agent.Command) {
		t.Helper()
		_, err := signals.Update(t.Context(), s.temporal, run.Session, c)
		require.Error(t, err)
	}
	for range 2 {
		say(agent.PauseCommand{CommandHeader: agent.CommandHeader{ID: "v-pause"}})
	}
	say(agent.StopCommand{CommandHeader: agent.CommandHeader{ID: "v-stop", Token: "nonsense"}})
	say(agent.AnswerCommand{CommandHeader: agent.CommandHeader{ID: "v-answer"}, Request: "q-9", Text: "Rome"})
	heard.mu.Lock()
	defer heard.mu.Unlock()
	require.Equal(t, []agent.Code{agent.CodeDenied, agent.CodeDenied}, heard.heard["v-pause"], "as often as it was said")
	require.Equal(t, []agent.Code{agent.CodeBadSignature}, heard.heard["v-stop"])
	require.Len(t, heard.heard["v-answer"], 1, "the run refuses it, and no policy")
}
