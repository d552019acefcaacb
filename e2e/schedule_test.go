package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	temporal "go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/testsuite"
)

// A schedule wakes a session: it begins its run where none is live, and speaks to the
// one that is. What it says is heard once a tick.
func TestASchedule(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	script := testsuite.NewScript(testsuite.Reply{Match: "You are being stopped", Text: `{"summary":"x"}`}, testsuite.Reply{Text: "seen", Repeat: 9})
	s.work(t, agent.Definition{Daemon: &agent.Daemon{Topics: []string{"day.begins"}}}, script)
	session := "watch-" + s.queue
	const never = "0 0 1 1 * 2090" // a tick of its own would be one too many
	spec := client.ScheduleSpec{Cron: never, Session: session, Agent: "tester", Topic: "day.begins", Payload: map[string]int{"day": 1}}
	require.NoError(t, s.CreateSchedule(t.Context(), "events-"+s.queue, spec))
	require.ErrorIs(t, s.CreateSchedule(t.Context(), "events-"+s.queue, spec), agent.CodeBusy)
	require.ErrorIs(t, s.CreateSchedule(t.Context(), "words-"+s.queue, client.ScheduleSpec{Cron: "0 0 30 2 *", Session: session, Agent: "tester", Text: "good morning"}), agent.CodeInvalidInput)
	require.NoError(t, s.CreateSchedule(t.Context(), "words-"+s.queue, client.ScheduleSpec{Cron: never, Session: session, Agent: "tester", Text: "good morning"}))

	s.trigger(t, "events-"+s.queue)
	run := s.live(t, session)
	s.heard(t, session, "Event day.begins: {\"day\":1}")
	s.trigger(t, "words-"+s.queue)
	s.heard(t, session, "Event day.begins: {\"day\":1}", "good morning")
	s.idles(t, run)
	s.say(t, run, agent.StopCommand{})
	require.Equal(t, agent.StatusStopped, s.result(t, run).Status)
	s.trigger(t, "words-"+s.queue) // it begins the next run
	s.heard(t, session, "Event day.begins: {\"day\":1}", "good morning", "good morning")
	run = s.live(t, session)
	s.idles(t, run)
	s.say(t, run, agent.CancelCommand{})

	require.Equal(t, client.ScheduleInfo{
		ID: "words-" + s.queue, Session: session, Agent: "tester", Text: "good morning", Cron: never,
	}, s.scheduled(t, "words-"+s.queue))
	require.NoError(t, s.DeleteSchedule(t.Context(), "words-"+s.queue))
	require.NoError(t, s.DeleteSchedule(t.Context(), "events-"+s.queue))
	require.ErrorIs(t, s.DeleteSchedule(t.Context(), "words-"+s.queue), agent.CodeNotFound)
}

// tick says something as a schedule does.
func (s *stage) tick(t *testing.T, tick agent.Tick) (out activities.TickResult, err error) {
	t.Helper()
	run, err := s.temporal.ExecuteWorkflow(t.Context(), temporal.StartWorkflowOptions{TaskQueue: s.queue}, signals.TickType, tick)
	require.NoError(t, err)
	err = run.Get(t.Context(), &out)
	return out, err
}

// A tick for which no run can begin fails at once, with why.
func TestATickThatNoRunCanTake(t *testing.T) {
	t.Parallel()
	s := setup(t, agent.Definition{}, testsuite.NewScript())
	for session, tick := range map[string]agent.Tick{
		"no-daemon": {Agent: "tester", Topic: "day.begins"}, "nobody": {Agent: "nobody", Topic: "day.begins"}, "unheard": {Agent: "nobody", Text: "good morning"},
	} {
		tick.Session = session + "-" + s.queue
		want := map[string]agent.Code{"tester": agent.CodeInvalidInput, "nobody": agent.CodeUnknownAgent}[tick.Agent]
		_, err := s.tick(t, tick)
		require.ErrorContains(t, err, string(want), session)
	}
}

// What a tick says while a run is being stopped is said to the next one.
func TestATickThatMeetsAStop(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	begun := make(chan string, 1)
	script := testsuite.NewScript(testsuite.Reply{Match: "You are being stopped", Text: `{"summary":"x"}`},
		testsuite.Reply{Match: "^work$", Calls: []testsuite.Call{{Tool: "block", Arguments: map[string]any{}}}}, testsuite.Reply{Text: "seen", Repeat: 9})
	s.work(t, agent.Definition{Daemon: &agent.Daemon{Topics: []string{"day.begins"}}}, script, block(begun))
	for name, tick := range map[string]agent.Tick{"text": {Text: "good morning"}, "event": {Topic: "day.begins"}} {
		run := s.begin(t, "work", &client.StartOptions{Session: name + "-" + s.queue})
		<-begun
		s.say(t, run, agent.StopCommand{Deadline: agent.Duration(4 * time.Second)})
		tick.Session, tick.Agent = run.Session, "tester"
		out, err := s.tick(t, tick)
		require.NoError(t, err)
		require.NotEqual(t, run.ID, out.Run)
		next := s.live(t, run.Session)
		require.Equal(t, out.Run, next.ID)
		s.idles(t, next)
		messages, err := s.Transcript(t.Context(), run.Session)
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(messagesText(messages), map[string]string{"text": "good morning", "event": "Event day.begins"}[name]))
		s.say(t, next, agent.CancelCommand{})
		s.result(t, next)
	}
}

func (s *stage) trigger(t *testing.T, id string) {
	t.Helper()
	require.NoError(t, s.temporal.ScheduleClient().GetHandle(t.Context(), id).Trigger(t.Context(), temporal.ScheduleTriggerOptions{}))
}

// live waits for a session's live run.
func (s *stage) live(t *testing.T, session string) (run *client.Run) {
	t.Helper()
	require.Eventually(t, func() bool {
		var err error
		run, err = s.Get(t.Context(), session)
		if err != nil {
			return false
		}
		st, err := run.Status(t.Context())
		return err == nil && !st.Status.Ended()
	}, patience, 10*time.Millisecond)
	return run
}

// heard waits until users have said just these texts in a session.
func (s *stage) heard(t *testing.T, session string, want ...string) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		messages, err := s.Transcript(t.Context(), session)
		require.NoError(c, err)
		var said []string
		for _, m := range messages {
			if m.Role == agent.RoleUser {
				said = append(said, m.Text())
			}
		}
		require.Equal(c, want, said)
	}, patience, 20*time.Millisecond)
}

// scheduled waits until a listing has a schedule, and returns it without its time.
func (s *stage) scheduled(t *testing.T, id string) (found client.ScheduleInfo) {
	t.Helper()
	require.Eventually(t, func() bool {
		for one, err := range s.ListSchedules(t.Context()) {
			require.NoError(t, err)
			if one.ID == id {
				found = one
			}
		}
		return found.ID != "" && !found.Next.IsZero()
	}, patience, 50*time.Millisecond)
	found.Next = time.Time{}
	return found
}
