package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// one returns the flows of a scene that needs one flow.
func one(do func(*world, flow.Context) (string, error)) func(*world) []flow.Flow {
	return func(w *world) []flow.Flow {
		return []flow.Flow{flow.New("outer", func(c flow.Context, _ string) (string, error) { return do(w, c) }, nil)}
	}
}

// event is a wait for an event.
func event(topic string) agent.Conditions {
	return agent.Conditions{Event: &agent.EventCondition{Topic: topic}}
}

// below is a flow that calls the next one.
func below(name, next string) flow.Flow {
	return flow.New(name, func(c flow.Context, _ string) (string, error) {
		text, err := flow.Agent[string](c, next, "go", nil)
		return name + " " + text, err
	}, &flow.Options{Agents: []agent.SubAgent{{Agent: next}}})
}

// The catalogue's rows about steps, levels, branches and fan-outs, each as a flow that goes the
// same way in memory, in memory with its functions run again after every result, and on a server.
// Every event of a step says whose it is, and every request and wait (OA-21, OA-28).
func TestFlowsByTheCatalogue(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]scene{
		// The smallest flow that rests (OA-01, OA-09, OA-72). The code behind the wait runs behind it
		// (OA-02), and what is done stays done (OA-03).
		"a step waits": {
			flows: one(func(w *world, c flow.Context) (string, error) {
				if err := w.do(c, "before"); err != nil {
					return "", err
				}
				e, err := flow.Wait(c, event("paid"), nil)
				if err != nil {
					return "", err
				}
				return string(e.Payload), w.do(c, "after")
			}),
			acts: []act{{"wait", "before 1", emits{"paid", 5}}},
			text: "5", did: "after 1, before 1",
		},
		// The step's code asks in the middle of its work. With the answer the same step runs again, from
		// its beginning, and sees it (OA-04, OA-35).
		"a step asks": {
			flows: one(func(w *world, c flow.Context) (string, error) {
				if err := w.do(c, "before"); err != nil {
					return "", err
				}
				return flow.Do(c, "match", func(_ context.Context, k *tool.Call) (string, error) {
					w.add("begun")
					which, err := flow.AskIn[string](k, "Which order?", nil)
					if err != nil {
						return "", err
					}
					w.add("matched " + which)
					return which, nil
				}, nil)
			}),
			acts: []act{{"match", "before 1, begun 1", answers{"match", "blue"}}},
			text: "blue", did: "before 1, begun 2, matched blue 1",
		},
		// It may ask again and again, people and events, and has each answer in its hand (OA-06). An
		// answer that does not fit is refused.
		"a step asks three times": {
			flows: one(func(w *world, c flow.Context) (string, error) {
				return flow.Do(c, "match", func(_ context.Context, k *tool.Call) (string, error) {
					w.add("begun")
					n, err := flow.AskIn[int](k, "How many?", nil)
					if err != nil {
						return "", err
					}
					paid, err := flow.WaitIn(k, event("paid"), nil)
					if err != nil {
						return "", err
					}
					sure, err := flow.AskIn[bool](k, fmt.Sprintf("Are %d right?", n), nil)
					return fmt.Sprint(n, " ", string(paid.Payload), " ", sure), err
				}, nil)
			}),
			acts: []act{
				{"match", "begun 1", mistakes{"match", "some"}},
				{"match", "begun 1", answers{"match", "7"}},
				{"match", "begun 2", emits{"paid", 5}},
				{"match", "begun 3", mistakes{"match", "perhaps"}},
				{"match", "begun 3", answers{"match", "yes"}},
			},
			text: "7 5 true", did: "begun 4",
		},
		// Code that goes on after its question, or recovers from everything, swallows no rest (OA-02, OA-07).
		"a step swallows": {
			flows: one(func(w *world, c flow.Context) (string, error) {
				return flow.Do(c, "match", func(_ context.Context, k *tool.Call) (string, error) {
					which, _ := flow.AskIn[string](k, "Which order?", nil)
					again, _ := flow.AskIn[string](k, "Sure?", nil)
					return which + " " + again, nil
				}, nil)
			}),
			acts: []act{{"match", "", answers{"match", "blue"}}, {"match", "", answers{"match", "yes"}}},
			text: "blue yes",
		},
		// Steps of several instances ask, each by its path, and each goes on by itself (OA-11, OA-50).
		"instances ask in their steps": {
			flows: one(func(w *world, c flow.Context) (string, error) {
				found, err := flow.Map(c, "invoice", []string{"a", "b", "c"}, func(c flow.Context, name string) (string, error) {
					return flow.Do(c, "match", func(_ context.Context, k *tool.Call) (string, error) {
						w.add(name)
						if name == "b" {
							return "only one", nil
						}
						return flow.AskIn[string](k, "Which order has "+name+"?", nil)
					}, nil)
				}, nil)
				return strings.Join(flow.Values(found), ", "), err
			}),
			acts: []act{
				{"invoice.1/match, invoice.3/match", "a 1, b 1, c 1", answers{"invoice.3/match", "red"}},
				{"invoice.1/match", "a 1, b 1, c 2", answers{"invoice.1/match", "blue"}},
			},
			text: "blue, only one, red", did: "a 2, b 1, c 2",
		},
		// A newer build takes over while the step waits. The answer counts for its question alone, although
		// the new code asks another one first.
		"a newer build asks": {
			flows: one(func(w *world, c flow.Context) (string, error) {
				return flow.Do(c, "match", func(_ context.Context, k *tool.Call) (string, error) {
					return flow.AskIn[string](k, "Which order?", nil)
				}, nil)
			}),
			then: one(func(w *world, c flow.Context) (string, error) {
				return flow.Do(c, "match", func(_ context.Context, k *tool.Call) (string, error) {
					who, err := flow.AskIn[string](k, "Which customer?", nil)
					if err != nil {
						return "", err
					}
					which, err := flow.AskIn[string](k, "Which order?", nil)
					return who + " " + which, err
				}, nil)
			}),
			acts: []act{{"match", "", deploys{"match", "blue"}}, {"match", "", answers{"match", "ana"}}},
			text: "ana blue",
		},
		// A part of the function that runs again may rest again, as often as it likes (OA-06).
		"three times": {
			flows: one(func(w *world, c flow.Context) (string, error) {
				var said []string
				for len(said) < 3 {
					text, err := flow.Ask[string](c, fmt.Sprintf("Question %d?", len(said)+1), nil)
					if err != nil {
						return "", err
					}
					said = append(said, text)
				}
				return strings.Join(said, " "), nil
			}),
			acts: []act{{"ask", "", answers{"ask", "a"}}, {"ask#2", "", answers{"ask#2", "b"}}, {"ask#3", "", answers{"ask#3", "c"}}},
			text: "a b c",
		},
		// Code that recovers from everything and ignores every error swallows no rest (OA-07).
		"a swallower": {
			flows: one(func(w *world, c flow.Context) (text string, _ error) {
				func() {
					defer func() { _ = recover() }()
					text, _ = flow.Ask[string](c, "Which?", nil)
				}()
				return "it was " + text, w.do(c, "after")
			}),
			acts: []act{{"ask", "", answers{"ask", "blue"}}},
			text: "it was blue", did: "after 1",
		},
		// What rests in the innermost of three levels suspends each of them. The answer, given at
		// the top, enters at the innermost, and its result comes out through all (OA-10, OA-47,
		// OA-76).
		"levels": {
			flows: func(w *world) []flow.Flow {
				return []flow.Flow{below("outer", "middle"), below("middle", "inner"), flow.New("inner", func(c flow.Context, _ string) (string, error) {
					if err := w.do(c, "before"); err != nil {
						return "", err
					}
					text, err := flow.Ask[string](c, "Which?", nil)
					return "inner " + text, err
				}, nil)}
			},
			acts: []act{{"middle-1/inner-1: ask", "before 1", answers{"middle-1/inner-1: ask", "blue"}}},
			text: "outer middle inner blue", did: "before 1",
		},
		// One of three instances rests, and says which it is (OA-11, OA-50). Its siblings are not
		// cancelled but go on to their ends (OA-49); the run rests when nothing else is left
		// (OA-48, OA-77).
		"an instance rests": {
			flows: one(func(w *world, c flow.Context) (string, error) {
				found, err := flow.Map(c, "file", []int{1, 2, 3}, func(c flow.Context, n int) (string, error) {
					if n == 2 {
						return flow.Ask[string](c, "Is this meant?", nil)
					}
					return strconv.Itoa(n), w.do(c, fmt.Sprint("file ", n))
				}, nil)
				return strings.Join(flow.Values(found), " "), err
			}),
			acts: []act{{"file.2/ask", "file 1 1, file 3 1", answers{"file.2/ask", "yes"}}},
			text: "1 yes 3", did: "file 1 1, file 3 1",
		},
		// Two of three branches rest, each by its name. Each goes on by itself (OA-11, OA-50, OA-77).
		"branches rest": {
			flows: one(func(w *world, c flow.Context) (string, error) {
				ask := func(name string) flow.Branch {
					return flow.Branch{Name: name, Do: func(c flow.Context) error {
						if d, err := flow.Approve(c, "May "+name+"?", name, nil); err != nil || !d.Approved {
							return errors.Join(err, errors.New("no"))
						}
						return w.do(c, name)
					}}
				}
				return "done", flow.Parallel(c, ask("law"), flow.Branch{Name: "free", Do: func(c flow.Context) error { return w.do(c, "free") }}, ask("money"))
			}),
			acts: []act{
				{"branch.law/approve, branch.money/approve", "free 1", approves{"branch.money/approve"}},
				{"branch.law/approve", "free 1, money 1", approves{"branch.law/approve"}},
			},
			fails: "", text: "done", did: "free 1, law 1, money 1",
		},
		// A fan-out that collects may rest too: an error of one instance is the instance's (OA-53,
		// OA-78).
		"a collecting fan-out rests": {
			flows: one(func(w *world, c flow.Context) (string, error) {
				found, err := flow.Map(c, "file", []int{1, 2}, func(c flow.Context, n int) (string, error) {
					if n == 1 {
						return "", errors.New("torn")
					}
					return flow.Ask[string](c, "Is this meant?", nil)
				}, &flow.MapOptions{Need: flow.Collect})
				return fmt.Sprint(found[0].Err, " ", found[1].Out), err
			}),
			acts: []act{{"file.2/ask", "", answers{"file.2/ask", "yes"}}},
			text: "torn yes",
		},
		// Middleware of a step is a function that takes the step. When the step rests, what is before it has
		// run, and what is behind it has not; that runs once, when the step has its result (OA-55).
		"middleware around a step that rests": {
			flows: one(func(w *world, c flow.Context) (string, error) {
				type next = func(flow.Context) (string, error)
				wrap := func(name string, do next) next {
					return func(c flow.Context) (string, error) {
						if err := w.do(c, name+" entered"); err != nil {
							return "", err
						}
						text, err := do(c)
						return text, errors.Join(err, w.do(c, name+" left"))
					}
				}
				return wrap("outer", wrap("inner", func(c flow.Context) (string, error) { return flow.Ask[string](c, "Which?", nil) }))(c)
			}),
			acts: []act{{"ask", "inner entered 1, outer entered 1", answers{"ask", "blue"}}},
			text: "blue", did: "inner entered 1, inner left 1, outer entered 1, outer left 1",
		},
		// What is put around a step may rest itself, before and after (OA-13, OA-83).
		"around a step": {
			flows: one(func(w *world, c flow.Context) (string, error) {
				around := func(c flow.Context, do func(flow.Context) (string, error)) (text string, err error) {
					err = flow.Scope(c, "around", func(c flow.Context) error {
						if _, err := flow.Ask[bool](c, "Begin?", &flow.AskOptions{Name: "begin"}); err != nil {
							return err
						}
						if err := w.do(c, "entered"); err != nil {
							return err
						}
						if text, err = do(c); err != nil {
							return err
						}
						if err := w.do(c, "left"); err != nil {
							return err
						}
						_, err = flow.Ask[bool](c, "Enough?", &flow.AskOptions{Name: "end"})
						return err
					})
					return text, err
				}
				return around(c, func(c flow.Context) (string, error) { return flow.Ask[string](c, "Which?", nil) })
			}),
			acts: []act{
				{"around/begin", "", answers{"around/begin", "yes"}},
				{"around/ask", "entered 1", answers{"around/ask", "blue"}},
				{"around/end", "entered 1, left 1", answers{"around/end", "yes"}},
			},
			text: "blue", did: "entered 1, left 1",
		},
		// A run waits for several events at once, here for any two of three (OA-54).
		"two of three events": {
			flows: one(func(w *world, c flow.Context) (string, error) {
				got, err := flow.WaitMany(c, "of", []agent.Conditions{event("hr"), event("it"), event("law")}, 2)
				return came(got), err
			}),
			acts: []act{
				{"of.1/wait, of.2/wait, of.3/wait", "", emits{"law", 1}},
				{"of.1/wait, of.2/wait", "", emits{"hr", 2}},
			},
			text: "hr2 law1",
		},
		// An event ends a wait, and so does a time (OA-116).
		"an event and a time": {
			flows: one(func(w *world, c flow.Context) (string, error) {
				paid, err := flow.Wait(c, event("paid"), nil)
				if err != nil {
					return "", err
				}
				late, err := flow.Wait(c, agent.Conditions{After: agent.Duration(10 * time.Millisecond)}, &flow.WaitOptions{Name: "late"})
				return fmt.Sprint(paid.Topic, " ", late.TimedOut), err
			}),
			acts: []act{{"wait", "", emits{"paid", 1}}},
			text: "paid true",
		},
		// A rest in a second attempt is a rest of the run. It goes on with that attempt (OA-65).
		"the second attempt rests": {
			flows: one(func(w *world, c flow.Context) (string, error) {
				for attempt := 1; ; attempt++ {
					if attempt > 1 {
						if _, err := flow.Ask[bool](c, "Once more?", nil); err != nil {
							return "", err
						}
					}
					if err := w.do(c, "attempt"); err != nil {
						return "", err
					}
					if attempt == 2 {
						return fmt.Sprint("attempt ", attempt), nil
					}
				}
			}),
			acts: []act{{"ask", "attempt 1", answers{"ask", "yes"}}},
			text: "attempt 2", did: "attempt 2",
		},
		// A for statement around an agent is a retry of the whole: each attempt is a run of its own,
		// from its beginning, and knows nothing of the one before (HA-158).
		"three independent runs": {
			flows: func(w *world) []flow.Flow {
				return []flow.Flow{
					flow.New("outer", func(c flow.Context, _ string) (text string, err error) {
						for range 3 {
							if text, err = flow.Agent[string](c, "inner", "go", nil); err == nil {
								return text, nil
							}
						}
						return "", err
					}, &flow.Options{Agents: []agent.SubAgent{{Agent: "inner"}}}),
					flow.New("inner", func(c flow.Context, _ string) (string, error) {
						n, err := flow.Do(c, "begin", func(context.Context, *tool.Call) (int, error) { return w.add("begun"), nil }, nil)
						if err == nil && n < 3 {
							err = errors.New("torn")
						}
						return fmt.Sprint("attempt ", n), err
					}, nil),
				}
			},
			text: "attempt 3", did: "begun 3",
		},
		// The flow says in its own type what an answer is. One of the wrong form is refused where it is
		// given, the run still rests, and a better one comes to the flow in that type (OA-17, OA-43,
		// OA-44, OA-74).
		"a wrong answer": {
			flows: one(func(w *world, c flow.Context) (string, error) {
				out, err := flow.Ask[struct {
					EUR int `json:"eur"`
				}](c, "How much?", nil)
				return fmt.Sprint(out.EUR), err
			}),
			acts: []act{{"ask", "", mistakes{"ask", `{"eur":"many"}`}}, {"ask", "", answers{"ask", `{"eur":5}`}}},
			text: "5",
		},
		// An answer changes fields of a flow's state. A list is replaced, and what the answer does not name
		// stays (OA-41, OA-42, OA-73). The changed state has to fit its schema: an answer that breaks it is
		// refused, and the run rests until a better one comes (OA-43, OA-44). So is one that names a field
		// that the state does not have (OA-45).
		"an answer changes a state": {
			flows: one(func(w *world, c flow.Context) (string, error) {
				s := struct {
					Title string   `json:"title"`
					Tags  []string `json:"tags"`
					EUR   int      `json:"eur"`
				}{"May", []string{"a", "b"}, 5}
				err := flow.Overlay(c, "What is wrong?", &s, nil)
				return fmt.Sprint(s), errors.Join(err, w.do(c, "after"))
			}),
			acts: []act{
				{"ask", "", mistakes{"ask", `{"tags":["c"],"eur":"many"}`}},
				{"ask", "", mistakes{"ask", `{"tax":1}`}},
				{"ask", "", answers{"ask", `{"tags":["c"],"eur":7}`}},
			},
			text: "{May [c] 7}", did: "after 1",
		},
		// A step that an interrupt has cut off is made again, with the same key. That is no retry: its
		// one attempt is not used up (OA-05).
		"a step is made again": {
			flows: one(func(w *world, c flow.Context) (string, error) {
				return flow.Do(c, "slow", func(ctx context.Context, k *tool.Call) (string, error) {
					w.mu.Lock()
					w.keys = append(w.keys, k.Key)
					same := len(slices.Compact(slices.Clone(w.keys))) == 1
					w.mu.Unlock()
					if w.add(fmt.Sprint("attempt ", k.Attempt)) == 1 {
						<-ctx.Done()
						return "", ctx.Err()
					}
					return fmt.Sprint("same key: ", same), nil
				}, &flow.StepOptions{ReadOnly: true})
			}),
			acts: []act{{"", "attempt 1 1", cutsOff{}}},
			text: "same key: true", did: "attempt 1 2",
		},
		// A fan-out whose items have changed is not refused: each item keeps its result by its key,
		// and further ones are done (OA-103).
		"items change": {
			flows: one(func(w *world, c flow.Context) (string, error) { return pays(w, c, "ana", "ben") }),
			then:  one(func(w *world, c flow.Context) (string, error) { return pays(w, c, "ben", "eva", "ana") }),
			acts:  []act{{"ask", "ana 1, ben 1", deploys{"ask", "yes"}}},
			text:  "ben eva ana", did: "ana 1, ben 1, eva 1",
		},
		// Conditions that can't be meant suspend nothing: the step has an error, which the function may
		// handle. Else the run fails (OA-114, OA-118).
		"a wait that can't be meant": {
			flows: one(func(w *world, c flow.Context) (string, error) {
				if err := w.do(c, "before"); err != nil {
					return "", err
				}
				_, err := flow.Wait(c, event("bad topic"), nil)
				return "it was armed", err
			}),
			fails: agent.CodeStepFailed, did: "before 1",
		},
		"a wait that can't be meant is handled": {
			flows: one(func(w *world, c flow.Context) (string, error) {
				_, err := flow.Wait(c, agent.Conditions{After: agent.Duration(-time.Hour)}, nil)
				var failed *flow.StepError
				if !errors.As(err, &failed) || failed.Status != agent.CallRejected {
					return "", fmt.Errorf("it is not rejected: %w", err)
				}
				return failed.Text, w.do(c, "instead")
			}),
			text: "not parked: conditions.after must be positive, not -1h", did: "instead 1",
		},
		// Outside of a run nothing rests (OA-12).
		"outside of a run": {
			flows: one(func(w *world, c flow.Context) (string, error) {
				var nobodys flow.Context
				_, wait := flow.Wait(nobodys, agent.Conditions{}, nil)
				_, fan := flow.Map(nobodys, "file", []int{1}, func(flow.Context, int) (int, error) { return 1, nil }, nil)
				scope := flow.Scope(nobodys, "part", func(flow.Context) error { return nil })
				for _, err := range []error{wait, fan, scope} {
					if !errors.Is(err, agent.CodeInvalidInput) {
						return "", fmt.Errorf("it is not refused: %w", err)
					}
				}
				return "refused", nil
			}),
			text: "refused",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for how, begin := range map[string]func(*testing.T, *world) player{
				"in memory":             func(t *testing.T, w *world) player { return newMemory(t, s, w, false) },
				"in memory, run again":  func(t *testing.T, w *world) player { return newMemory(t, s, w, true) },
				"on a server, replayed": func(t *testing.T, w *world) player { return newOnServer(t, s, w) },
			} {
				t.Run(how, func(t *testing.T) {
					t.Parallel()
					w := &world{}
					s.play(t, w, begin(t, w))
				})
			}
		})
	}
}

// came returns the events that have come.
func came(got []flow.Item[flow.Event]) string {
	var all []string
	for _, e := range flow.Values(got) {
		all = append(all, e.Topic+string(e.Payload))
	}
	return strings.Join(all, " ")
}

// pays pays each of some people, and asks whether that is all.
func pays(w *world, c flow.Context, people ...string) (string, error) {
	paid, err := flow.Map(c, "pay", people, func(c flow.Context, who string) (string, error) { return who, w.do(c, who) },
		&flow.MapOptions{Key: func(i int) string { return people[i] }})
	if err != nil {
		return "", err
	}
	_, err = flow.Ask[bool](c, "Is that all?", nil)
	return strings.Join(flow.Values(paid), " "), err
}

// Only the keys that the agent names persist: what a run sets under others is gone for the next run,
// and stays for a fork of the run itself (OA-88).
func TestScratchStateEndsWithItsRun(t *testing.T) {
	t.Parallel()
	paid, scratch := tool.Key[int]("paid"), tool.Key[int]("scratch")
	found := make(chan string, 9)
	count := tool.New("count", "counts", func(ctx context.Context, c *tool.Call, _ struct{}) (string, error) {
		a, _, err := paid.Get(ctx, c)
		b, _, errs := scratch.Get(ctx, c)
		found <- fmt.Sprint(a, " ", b)
		return "counted", errors.Join(err, errs, paid.Set(c, a+1), scratch.Set(c, b+1))
	}, nil)
	counts := func(n int) (all []testsuite.Reply) {
		for range n {
			all = append(all, testsuite.Reply{Calls: []testsuite.Call{{Tool: "count"}}}, testsuite.Reply{Calls: []testsuite.Call{{Tool: "count"}}}, testsuite.Reply{Text: "done"})
		}
		return all
	}
	s := setup(t, agent.Definition{PersistState: []string{"paid"}}, testsuite.NewScript(counts(3)...), count)
	finds := func(want ...string) {
		t.Helper()
		require.Equal(t, want, []string{<-found, <-found})
	}
	run, _ := s.run(t, "go", &client.StartOptions{Session: "scratch-" + s.queue})
	finds("0 0", "1 1")
	_, _ = s.run(t, "again", &client.StartOptions{Session: run.Session})
	finds("2 0", "3 1")
	f, err := s.Fork(t.Context(), run.Session, &client.ForkOptions{Text: "once more"})
	require.NoError(t, err)
	run, err = f.Start(t.Context())
	require.NoError(t, err)
	_, err = run.Result(t.Context())
	require.NoError(t, err)
	finds("4 2", "5 3")
}

// Branches of a flow share its session, and see its state. A run below has a session of its own
// (OA-91).
func TestWhatIsBelowAFlowHasItsOwnState(t *testing.T) {
	t.Parallel()
	mood := tool.Key[string]("mood")
	look := func(ctx context.Context, c *tool.Call) (string, error) {
		v, ok, err := mood.Get(ctx, c)
		if !ok {
			v = "nothing"
		}
		return v, err
	}
	inner := flow.New("inner", func(c flow.Context, _ string) (string, error) { return flow.Do(c, "look", look, nil) }, nil)
	outer := flow.New("outer", func(c flow.Context, _ string) (string, error) {
		if _, err := flow.Do(c, "set", func(_ context.Context, c *tool.Call) (bool, error) { return true, mood.Set(c, "good") }, nil); err != nil {
			return "", err
		}
		seen, err := flow.Map(c, "in", []string{"branch", "run"}, func(c flow.Context, where string) (string, error) {
			if where == "run" {
				return flow.Agent[string](c, "inner", "go", nil)
			}
			return flow.Do(c, "look", look, nil)
		}, nil)
		return strings.Join(flow.Values(seen), " "), err
	}, &flow.Options{Agents: []agent.SubAgent{{Agent: "inner"}}})
	p := newOnServer(t, scene{flows: func(*world) []flow.Flow { return []flow.Flow{outer, inner} }}, nil)
	text, _ := p.end(t)
	require.Equal(t, "good nothing", text)
}
