package testsuite_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// payer pays, when somebody lets it, and looks a week later whether it has arrived.
func payer(paid *[]string) *worker.Options {
	pay := tool.New("pay", "pays an amount", func(_ context.Context, c *tool.Call, in struct{ EUR int }) (string, error) {
		*paid = append(*paid, c.Key)
		return "paid", nil
	}, nil)
	return &worker.Options{
		Tools: []tool.Tool{pay},
		Agents: []agent.Definition{{
			Name: "payer", Model: "anthropic/claude-sonnet-5", Tools: []string{"pay", agent.AskUserTool, agent.AwaitResumptionTool},
			Rules: []agent.Rule{{Do: agent.RulingAsk, Tools: []string{"pay"}}},
		}},
	}
}

func payment() *testsuite.Script {
	return testsuite.NewScript(
		testsuite.Reply{Calls: []testsuite.Call{{Tool: "pay", Arguments: map[string]any{"EUR": 800}}}},
		testsuite.Reply{Calls: []testsuite.Call{{Tool: agent.AwaitResumptionTool, Arguments: map[string]any{"reason": "the bank is slow", "conditions": map[string]any{"after": "168h"}}}}},
		testsuite.Reply{Text: "It has arrived."},
	)
}

// A program's options may come without its models, which a test does not need.
func TestAModelThatIsNilIsStoodInFor(t *testing.T) {
	var paid []string
	o := payer(&paid)
	for _, name := range []string{"anthropic", "anthropic/claude-sonnet-5"} {
		o.Models = map[string]model.Model{name: nil}
		s := testsuite.New(t, &testsuite.Options{Worker: o, Model: testsuite.NewScript(testsuite.Reply{Text: "Nothing is open."})})
		require.Equal(t, "Nothing is open.", s.Start("payer", "Pay what is open", nil).Completed().Text)
	}
}

func TestAWholeStory(t *testing.T) {
	var paid []string
	s := testsuite.New(t, &testsuite.Options{Worker: payer(&paid), Model: payment()})
	run := s.Start("payer", "Pay invoice 118", nil)
	rest := run.Suspended()
	require.Equal(t, agent.SuspensionInputRequired, rest.Kind)
	require.Equal(t, "pay", rest.Requests[0].Call.Tool)
	require.Empty(t, paid)
	run.Approve()
	require.Equal(t, agent.SuspensionParked, run.Suspended().Kind)
	require.Len(t, paid, 1)
	s.FastForward(6 * 24 * time.Hour)
	require.Equal(t, agent.SuspensionParked, run.Suspended().Kind)
	s.FastForward(24 * time.Hour)
	o := run.Completed()
	require.Equal(t, "It has arrived.", o.Text)
	require.InDelta(t, 7*24*time.Hour, time.Duration(o.SuspendedFor), float64(time.Second))
	run.Golden("testdata/payer.txt")
	require.Contains(t, run.Transcript()[0].Text(), "Summed up", "after a long wait the model goes on from a summary")
	refused := run.CommandRefused(agent.PauseCommand{})
	require.Equal(t, []any{agent.CodeClosed, run.Session, o.Run, agent.StatusCompleted}, []any{refused.Code, refused.Session, refused.Run, refused.Status})
	raw, err := json.Marshal(run.Status())
	require.NoError(t, err)
	require.Contains(t, string(raw), `"status":"completed"`)

	again := s.Start("payer", "And 119", &client.StartOptions{Session: run.Session})
	require.Equal(t, agent.StatusFailed, again.Ended().Status, "the script has come to its end")
	require.NotEqual(t, o.Run, again.Wait().Run)
}

// What a model said once is played again.
func TestARecordedConversation(t *testing.T) {
	var paid []string
	person := &testsuite.Person{Rules: []testsuite.PersonRule{{Type: agent.RequestApproval, Approve: true}}}
	play := func(script *testsuite.Script) *testsuite.Run {
		s := testsuite.New(t, &testsuite.Options{Worker: payer(&paid), Model: script, Person: person})
		run := s.Start("payer", "Pay invoice 118", nil)
		run.Completed()
		return run
	}
	first := play(testsuite.NewScript(
		testsuite.Reply{Thinking: "hm", Text: "I'll pay.", Calls: []testsuite.Call{{Tool: "pay", Arguments: map[string]any{"EUR": 1}, ID: "call_1"}}},
		testsuite.Reply{Text: "Done."},
	))
	second := play(testsuite.ScriptFromMessages(first.Transcript()))
	require.Equal(t, first.Story(), second.Story())
	require.Equal(t, first.Transcript(), second.Transcript())
	require.Len(t, paid, 2)
}

// The person does what its rules say, or its model, no more often than it may, and
// what it did can be read (HA-121, HA-122, HA-155).
func TestThePerson(t *testing.T) {
	var paid []string
	ask := testsuite.Reply{Calls: []testsuite.Call{{Tool: agent.AskUserTool, Arguments: map[string]any{"question": "Which account?", "choices": []string{"main", "other"}}}}}
	for name, c := range map[string]struct {
		person *testsuite.Person
		want   agent.Status
		told   string
	}{
		"answers":         {&testsuite.Person{Rules: []testsuite.PersonRule{{Match: "account", Text: "the main one"}}}, agent.StatusCompleted, "the main one"},
		"chooses":         {&testsuite.Person{Rules: []testsuite.PersonRule{{Type: agent.RequestApproval, Fail: "no"}, {Choice: "other"}}}, agent.StatusCompleted, "other"},
		"has a model":     {&testsuite.Person{Goal: "spend nothing", Model: testsuite.NewScript(testsuite.Reply{Match: "Choose one of: main, other", Text: "neither"})}, agent.StatusCompleted, "neither"},
		"stops the run":   {&testsuite.Person{Rules: []testsuite.PersonRule{{Stop: "enough"}}}, agent.StatusStopped, ""},
		"ignores":         {&testsuite.Person{Rules: []testsuite.PersonRule{{Ignore: true}}}, agent.StatusSuspended, ""},
		"has other rules": {&testsuite.Person{Rules: []testsuite.PersonRule{{Agent: "someone", Text: "me"}, {Tool: "pay", Approve: true}}}, agent.StatusSuspended, ""},
	} {
		t.Run(name, func(t *testing.T) {
			script := testsuite.NewScript(ask, testsuite.Reply{Text: "Thanks."})
			s := testsuite.New(t, &testsuite.Options{Worker: payer(&paid), Model: script, Person: c.person})
			o := s.Start("payer", "Pay", nil).Wait()
			require.Equal(t, c.want, o.Status)
			if c.told != "" {
				messages := script.Requests()[1].Messages
				require.Contains(t, messages[len(messages)-2].Parts[0].Result.Text, c.told)
				require.Equal(t, agent.NoteResumed, messages[len(messages)-1].Note)
				require.Len(t, c.person.Decisions(), 1)
				require.Equal(t, "Which account?", c.person.Decisions()[0].Request.Text)
			}
		})
	}
}

// What a stage can't play, or what the test did not want, fails it in words that help
// (HA-155).
func TestWhatFailsATest(t *testing.T) {
	var paid []string
	ask := testsuite.Reply{Repeat: 3, Calls: []testsuite.Call{{Tool: agent.AskUserTool, Arguments: map[string]any{"question": "Sure?"}}}}
	twice := &testsuite.Person{MaxReplies: 1, Rules: []testsuite.PersonRule{{Text: "yes"}}}
	tree := payer(&paid)
	tree.Agents = append(tree.Agents, agent.Definition{Name: "lead", Model: "m", Agents: []agent.SubAgent{{Agent: "payer", Tools: []string{"*"}}}})
	busy, free := make(chan struct{}), make(chan struct{})
	slow := payer(&paid)
	slow.Agents[0].Rules = nil
	slow.Tools[0] = tool.New("pay", "", func(context.Context, *tool.Call, struct{ EUR int }) (string, error) {
		close(busy)
		<-free
		return "paid", nil
	}, nil)
	for want, play := range map[string]func(t testing.TB){
		"the person has given the 1 answers that MaxReplies allows": func(t testing.TB) {
			testsuite.New(t, &testsuite.Options{Worker: payer(&paid), Model: testsuite.NewScript(ask), Person: twice}).Start("payer", "go", nil).Wait()
		},
		"has 2 decisions": func(t testing.TB) {
			both := &testsuite.Person{Rules: []testsuite.PersonRule{{Approve: true, Text: "yes"}}}
			testsuite.New(t, &testsuite.Options{Worker: payer(&paid), Model: payment(), Person: both})
		},
		"but the choices are": func(t testing.TB) {
			other := &testsuite.Person{Rules: []testsuite.PersonRule{{Choice: "the third"}}}
			testsuite.New(t, &testsuite.Options{Worker: payer(&paid), Model: testsuite.NewScript(ask), Person: other}).Start("payer", "go", nil).Wait()
		},
		"time goes one way": func(t testing.TB) {
			testsuite.New(t, &testsuite.Options{Worker: payer(&paid), Model: payment()}).FastForward(-time.Hour)
		},
		"Worker is missing": func(t testing.TB) { testsuite.New(t, nil) },
		"which starts with": func(t testing.TB) {
			testsuite.New(t, &testsuite.Options{Worker: payer(&paid), Model: testsuite.NewScript()}).Start("payer", "go", nil).Completed()
		},
		"must not ask": func(t testing.TB) {
			never := &testsuite.Person{Rules: []testsuite.PersonRule{{Fail: "never"}}}
			s := testsuite.New(t, &testsuite.Options{Worker: payer(&paid), Model: payment(), Person: never})
			s.Start("payer", "go", nil)
			s.Start("payer", "go", nil).Suspended() // nobody waits for the first
		},
		"starts a sub-agent": func(t testing.TB) {
			script := testsuite.NewScript(testsuite.Reply{Calls: []testsuite.Call{{Tool: "subagent__payer", Arguments: map[string]any{"task": "go"}}}})
			testsuite.New(t, &testsuite.Options{Worker: tree, Model: script}).Start("lead", "go", nil).Wait()
		},
		"does not cancel calls": func(t testing.TB) {
			defer close(free)
			run := testsuite.New(t, &testsuite.Options{Worker: slow, Model: payment()}).Start("payer", "go", nil)
			<-busy
			require.Equal(t, agent.StatusRunning, run.Status().Status)
			run.Interrupt()
		},
		"should end, but it is suspended": func(t testing.TB) {
			testsuite.New(t, &testsuite.Options{Worker: payer(&paid), Model: payment()}).Start("payer", "go", nil).Ended()
		},
		"should be suspended, but it has ended": func(t testing.TB) {
			testsuite.New(t, &testsuite.Options{Worker: payer(&paid), Model: testsuite.NewScript(testsuite.Reply{Text: "Hi."})}).Start("payer", "go", nil).Suspended()
		},
		"EndWith needs a server": func(t testing.TB) {
			testsuite.New(t, &testsuite.Options{Worker: payer(&paid), Model: payment()}).Start("payer", "go", &client.StartOptions{EndWith: &client.EndWith{Context: t.Context()}})
		},
		"Crash needs": func(t testing.TB) {
			testsuite.New(t, &testsuite.Options{Worker: payer(&paid), Model: payment(), Crash: &testsuite.Crash{}})
		},
		"needs_answer": func(t testing.TB) {
			run := testsuite.New(t, &testsuite.Options{Worker: payer(&paid), Model: payment()}).Start("payer", "go", nil)
			run.Suspended()
			run.Resume()
		},
	} {
		t.Run(want, func(t *testing.T) { require.Contains(t, testenv.FailureOf(t, play), want) })
	}
}

// What is said at any moment is heard, whether the run rests, works or has just begun.
func TestSaidAtAnyMoment(t *testing.T) {
	var paid []string
	s := testsuite.New(t, &testsuite.Options{Worker: payer(&paid), Model: payment()})
	run := s.Start("payer", "go", nil)
	require.NotEqual(t, agent.StatusPending, run.Status().Status)
	require.Equal(t, agent.EffectAccepted, run.Pause().Effect)
	for range 3 { // held at rest, it is published and rests on
		require.Len(t, run.Suspended().Holds, 1)
		run.Resume()
		require.Empty(t, run.Suspended().Holds)
		run.Pause()
	}
	run.Resume()
	run.Approve()
	s.FastForward(8 * 24 * time.Hour)
	run.Completed()
	for range 100 {
		require.Equal(t, agent.StatusCompleted, run.Status().Status)
	}
	next := s.Start("payer", "again", &client.StartOptions{Session: run.Session, Carry: agent.CarryReset})
	require.GreaterOrEqual(t, next.Suspended().Since.Sub(run.Events()[0].Time), 8*24*time.Hour, "the time that went by is gone")
	next.Cancel()
	require.Equal(t, agent.StatusCancelled, next.Ended().Status)
}

// A daemon is played without a server, too.
func TestADaemonOnTheStage(t *testing.T) {
	daemon := &worker.Options{Agents: []agent.Definition{{Name: "watcher", Model: "m", Daemon: &agent.Daemon{Every: agent.Duration(time.Hour)}}}}
	script := testsuite.NewScript(testsuite.Reply{Match: "orders.paid", Text: "Booked."}, testsuite.Reply{Match: ".", Text: "Nothing."})
	s := testsuite.New(t, &testsuite.Options{Worker: daemon, Model: script})
	run := s.Start("watcher", "", nil)
	run.Suspended()
	run.Emit("orders.paid", map[string]any{"order": 118})
	require.Equal(t, agent.SuspensionParked, run.Suspended().Kind)
	s.FastForward(3*time.Hour + time.Minute)
	run.Suspended()
	require.Len(t, script.Requests(), 1+3)
	run.Stop("enough")
	require.Equal(t, agent.StatusStopped, run.Ended().Status)
}

// A tool that is an activity of the test's own needs no server.
func TestAnActivityOfTheTestsOwn(t *testing.T) {
	type city struct {
		Name string `json:"name"`
	}
	weather := tool.Activity[city]("weather", "Tells the weather.", tool.ActivityTarget{Type: "Weather", TaskQueue: "house"}, nil)
	s := testsuite.New(t, &testsuite.Options{
		Worker:     &worker.Options{Agents: []agent.Definition{{Name: "a", Model: "script", Tools: []string{"weather"}}}, Tools: []tool.Tool{weather}},
		Model:      testsuite.NewScript(testsuite.Reply{Calls: []testsuite.Call{{Tool: "weather", Arguments: map[string]any{"name": "Lima"}}}}, testsuite.Reply{Match: "foggy", Text: "fog"}),
		Activities: map[string]any{"Weather": func(_ context.Context, in city) (string, error) { return "foggy in " + in.Name, nil }},
	})
	require.Equal(t, "fog", s.Start("a", "go", nil).Completed().Text)
}
