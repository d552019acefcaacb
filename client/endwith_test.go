package client

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/remembered"
)

// atWork is a server with one live run, which accepts every verb.
func atWork(t *testing.T) (*fake, *Run) {
	t.Helper()
	f := &fake{update: accepted, describe: func(string, string) (*workflowpb.WorkflowExecutionInfo, error) {
		return execution(t, "a", "01a1", running, agent.Memo{}, nil), nil
	}}
	return f, &Run{client: New(f, nil), Session: "a", ID: "01a1"}
}

// A context that is done sends one verb, to the one run, however often it is said that it is
// done. No goroutine is there before, and none is left: the bubble would not end.
func TestAContextEndsItsRun(t *testing.T) {
	for name, c := range map[string]struct {
		with EndWith
		want string // without the id
		verb agent.Verb
	}{
		"by default":   {EndWith{}, `"run":"01a1","reason":"context canceled"`, agent.VerbCancel},
		"a stop":       {EndWith{Verb: agent.VerbStop, Reason: "client_disconnect", By: "web"}, `"by":"web","run":"01a1","reason":"client_disconnect"`, agent.VerbStop},
		"an interrupt": {EndWith{Verb: agent.VerbInterrupt, Token: "v1.x"}, `"run":"01a1","token":"v1.x","reason":"context canceled"`, agent.VerbInterrupt},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, r := atWork(t)
				ctx, cancel := context.WithCancel(t.Context())
				with := c.with
				with.Context = ctx
				require.NoError(t, r.EndWith(with))
				synctest.Wait()
				require.Empty(t, f.said)
				cancel()
				cancel()
				synctest.Wait()
				require.Len(t, f.said, 1)
				require.Equal(t, c.verb, f.said[0].Verb())
				id := f.said[0].Header().ID
				require.NotEmpty(t, id)
				require.JSONEq(t, fmt.Sprintf(`{"id":%q,%s}`, id, c.want), onWire(t, f.said[0]))
				require.Equal(t, id+"-"+remembered.CommandDigest(f.said[0]), f.ids[0])
				require.NoError(t, r.Detach())
				require.NoError(t, r.Detach())
				require.Len(t, f.said, 1)
				require.EqualValues(t, 7, r.seq.Load(), "Wait knows what the run was sent")
				require.Equal(t, c.verb != agent.VerbInterrupt, r.ending.Load())
			})
		})
	}
}

// A deadline is a reason of its own.
func TestADeadlineEndsItsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, r := atWork(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.NoError(t, r.EndWith(EndWith{Context: ctx}))
		<-ctx.Done()
		synctest.Wait()
		require.Len(t, f.said, 1)
		require.Equal(t, "context deadline exceeded", f.said[0].(agent.CancelCommand).Reason)
	})
}

// What is taken back ends no run: by hand, or since the run has ended.
func TestATieIsTakenBack(t *testing.T) {
	for name, back := range map[string]func(t *testing.T, r *Run){
		"by hand": func(t *testing.T, r *Run) { require.NoError(t, r.Detach()) },
		"by the run's result": func(t *testing.T, r *Run) {
			o, err := r.Result(t.Context())
			require.NoError(t, err)
			require.Equal(t, agent.StatusCompleted, o.Status)
		},
		"by a wait for its end": func(t *testing.T, r *Run) {
			o, err := r.Wait(t.Context())
			require.NoError(t, err)
			require.Equal(t, agent.StatusCompleted, o.Status)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, r := atWork(t)
				f.describe = func(string, string) (*workflowpb.WorkflowExecutionInfo, error) {
					return execution(t, "a", "01a1", completed, agent.Memo{}, nil), nil
				}
				f.history = closedHistory()
				f.result = func(string) (agent.Outcome, error) {
					return agent.Outcome{Type: "outcome", Status: agent.StatusCompleted}, nil
				}
				ctx, cancel := context.WithCancel(t.Context())
				for range 3 {
					require.NoError(t, r.EndWith(EndWith{Context: ctx}))
				}
				back(t, r)
				cancel()
				synctest.Wait()
				require.Empty(t, f.said)
				require.NoError(t, r.Detach())
			})
		})
	}
}

// A run that has ended already is left alone, and that is no error. So is a run that has ended
// while another one of its session is live.
func TestAnEndedRunIsLeftAlone(t *testing.T) {
	for _, refusal := range []error{errCompleted, serviceerror.NewNotFound("no such workflow"), agent.Errorf(agent.CodeStale, "another run is live")} {
		synctest.Test(t, func(t *testing.T) {
			f, r := atWork(t)
			f.update = func(context.Context, string, agent.Command) (agent.Ack, error) { return agent.Ack{}, refusal }
			f.describe = func(string, string) (*workflowpb.WorkflowExecutionInfo, error) {
				return execution(t, "a", "01a1", completed, agent.Memo{}, nil), nil
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			require.NoError(t, r.EndWith(EndWith{Context: ctx}))
			require.NoError(t, r.Detach())
			require.NotEmpty(t, f.said)
		})
	}
}

// Where no worker answers, the verb waits for the next one, under the same id. While the server
// is away it is tried again, for a while. A refusal is for whoever detaches.
func TestAVerbOfAContextThatIsNotTaken(t *testing.T) {
	away := serviceerror.NewUnavailable("away")
	for name, c := range map[string]struct {
		update func(tries int) error
		tries  int // updates; 0 is any number
		left   int // signals
		code   agent.Code
	}{
		"no worker":       {func(int) error { return serviceerror.NewFailedPrecondition("no poller") }, 1, 1, ""},
		"away for a time": {func(n int) error { return map[bool]error{true: away}[n < 4] }, 4, 0, ""},
		"away for ever":   {func(int) error { return away }, 0, 0, agent.CodeUnreachable},
		"refused":         {func(int) error { return agent.Errorf(agent.CodeDenied, "a policy binds cancel") }, 1, 0, agent.CodeDenied},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, r := atWork(t)
				f.update = func(ctx context.Context, session string, command agent.Command) (agent.Ack, error) {
					require.NoError(t, ctx.Err())
					if err := c.update(len(f.said)); err != nil {
						return agent.Ack{}, err
					}
					return accepted(ctx, session, command)
				}
				var left []agent.Command
				f.signal = func(_ string, command agent.Command) error { left = append(left, command); return nil }
				f.history = func(context.Context, string) (*historypb.HistoryEvent, error) { return nil, nil }
				ctx, cancel := context.WithCancel(t.Context())
				require.NoError(t, r.EndWith(EndWith{Context: ctx}))
				cancel()
				began := time.Now()
				err := r.Detach()
				require.LessOrEqual(t, time.Since(began), endWithin)
				if c.code == "" {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, c.code)
				}
				if c.tries > 0 {
					require.Len(t, f.said, c.tries)
				}
				require.Len(t, left, c.left)
				for _, command := range append(f.said, left...) {
					require.Equal(t, f.said[0], command)
				}
			})
		})
	}
}

// A refusal that passes does not end the tries, also where no signal is left: a verb with a token is
// never one.
func TestAVerbOfAContextIsTriedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		token   string
		refusal error
	}{
		"a token and no worker":            {"v1.x", serviceerror.NewFailedPrecondition("no poller")},
		"a token and no answer":            {"v1.x", context.DeadlineExceeded},
		"not recorded by the audit":        {"", agent.Errorf(agent.CodeNotWritten, "cancel refused: disk full")},
		"its execution closes, it goes on": {"", serviceerror.NewNotFound("workflow update was aborted by closing workflow")},
		"its execution has completed":      {"", errCompleted},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, r := atWork(t)
				f.update = func(ctx context.Context, session string, command agent.Command) (agent.Ack, error) {
					if len(f.said) < 3 {
						return agent.Ack{}, c.refusal
					}
					return accepted(ctx, session, command)
				}
				ctx, cancel := context.WithCancel(t.Context())
				require.NoError(t, r.EndWith(EndWith{Context: ctx, Token: c.token}))
				cancel()
				require.NoError(t, r.Detach())
				require.Len(t, f.said, 3)
				require.Equal(t, f.said[0], f.said[2], "one id")
			})
		})
	}
}

// Whoever waits with a context that is done goes on when the verb is sent: a program that exits
// then does not leave the run at work.
func TestAWaitOutlastsTheVerb(t *testing.T) {
	for name, wait := range map[string]func(*Run, context.Context) (*agent.Outcome, error){"result": (*Run).Result, "wait": (*Run).Wait} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, r := newWaiting(t)
				sent := false
				w.update = func(ctx context.Context, session string, command agent.Command) (agent.Ack, error) {
					<-time.After(time.Second) // of fake time, as a slow server
					sent = true
					return accepted(ctx, session, command)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				require.NoError(t, r.EndWith(EndWith{Context: ctx}))
				within, done := context.WithCancel(ctx)
				defer done()
				_, err := wait(r, within)
				require.Error(t, err)
				require.True(t, sent)
			})
		})
	}
}

// starting is a server that is slow to start a run.
type starting struct {
	*fake
	during func(ctx context.Context)
}

func (s starting) ExecuteWorkflow(ctx context.Context, o client.StartWorkflowOptions, workflow any, args ...any) (client.WorkflowRun, error) {
	s.during(ctx)
	return s.fake.ExecuteWorkflow(ctx, o, workflow, args...)
}

// begins are the ways to begin a run that ends with a context.
var begins = map[string]func(c *Client, ctx context.Context, with *EndWith) (*Run, error){
	"start": func(c *Client, ctx context.Context, with *EndWith) (*Run, error) {
		return c.Start(ctx, "payer", "pay", &StartOptions{EndWith: with, Files: []FileInput{{Name: "a.txt", Data: []byte("a")}}})
	},
	"retry": func(c *Client, ctx context.Context, with *EndWith) (*Run, error) {
		return (&PreparedRun{client: c, session: "b", start: agent.Start{V: 1, Agent: "payer", Input: agent.Input{Text: "pay"}, From: &agent.StartFrom{Checkpoint: "cp-1", Retry: "01a1"}}, endWith: with}).Start(ctx)
	},
}

// A context that is done begins no run and stores no file, whichever of the two it is (HX-45).
func TestADoneContextBeginsNothing(t *testing.T) {
	done, cancel := context.WithCancel(t.Context())
	cancel()
	for name, begin := range begins {
		for _, both := range [][2]context.Context{{t.Context(), done}, {done, t.Context()}} {
			c := New(&fake{}, nil) // it panics if it is asked anything
			_, err := begin(c, both[0], &EndWith{Context: both[1]})
			require.ErrorIs(t, err, context.Canceled, name)
		}
	}
}

// If a context is done while the server starts a run, the start is not cut short: the run would
// be known to nobody. It is sent the verb as soon as it is known.
func TestAStartIsNotCutShort(t *testing.T) {
	for name, begin := range begins {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				th := newTheatre(t)
				th.fake.begin = func(agent.Start) (string, error) { return "02b2", nil }
				th.update = accepted
				c := New(starting{th.fake, func(call context.Context) {
					cancel()
					require.NoError(t, call.Err())
					deadline, bounded := call.Deadline()
					require.True(t, bounded)
					require.Equal(t, startWithin, time.Until(deadline))
				}}, &Options{Store: th.store})
				run, err := begin(c, ctx, &EndWith{Context: ctx})
				require.NoError(t, err)
				require.Equal(t, "02b2", run.ID)
				require.NoError(t, run.Detach())
				require.Len(t, th.said, 1)
				require.Equal(t, "02b2", th.said[0].Header().Run)
			})
		})
	}
}

// Without EndWith a context cuts the call short, as it cuts every call, and ends no run.
func TestNoContextEndsARunUnasked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{begin: func(agent.Start) (string, error) { return "02b2", nil }}
		ctx, cancel := context.WithCancel(t.Context())
		c := New(starting{f, func(call context.Context) { require.Equal(t, ctx, call) }}, nil)
		run, err := c.Start(ctx, "payer", "pay", nil)
		require.NoError(t, err)
		cancel()
		synctest.Wait()
		require.Empty(t, f.said)
		require.NoError(t, run.Detach())
	})
}

// What no run could be sent is refused before a run begins.
func TestWhatCantEndARun(t *testing.T) {
	ctx := t.Context()
	for path, with := range map[string]EndWith{
		"end_with.context": {}, "end_with.verb": {Context: ctx, Verb: agent.VerbSend},
	} {
		err := (&Run{client: New(&fake{}, nil), Session: "a", ID: "01a1"}).EndWith(with)
		var e *agent.Error
		require.ErrorAs(t, err, &e, path)
		require.Equal(t, []any{agent.CodeInvalidInput, path}, []any{e.Code, e.Path})
		_, err = New(&fake{}, nil).Start(ctx, "payer", "pay", &StartOptions{EndWith: &with})
		require.ErrorIs(t, err, agent.CodeInvalidInput)
	}
}

// A program that ends a thousand runs at once leaves nothing behind, and none of its calls has a
// context that is done.
func TestAThousandRunsEndAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, first := atWork(t)
		f.update = func(ctx context.Context, session string, command agent.Command) (agent.Ack, error) {
			<-time.After(10 * time.Millisecond) // of fake time
			return accepted(ctx, session, command)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		var runs []*Run
		for i := range 1000 {
			run := &Run{client: first.client, Session: fmt.Sprint("s-", i), ID: "01a1"}
			require.NoError(t, run.EndWith(EndWith{Context: ctx}))
			runs = append(runs, run)
		}
		cancel(errors.New("a shutdown"))
		for _, run := range runs {
			require.NoError(t, run.Detach())
		}
		require.Len(t, f.said, 1000)
	})
}
