package loop

import (
	"encoding/json"
	"flag"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// most bounds a search: a default that takes seconds. There are about five times as
// many states with each further input.
var most = flag.Int("states", 150, "at how many states of each theme the exhaustive search looks")

const born = `begin-child {"parent":{"session":"s","run":"p"},"depth":1,"max_depth":3,"holds":[{"id":"h-1","from":"inherited","session":"s","verb":"pause"}],"known_holds":[{"session":"s","n":1}]}`

const bornWith = `begin-child {"parent":{"session":"s","run":"p"},"depth":1,"max_depth":2,"grant":{"tokens":40,"turns":3,"agents":2,"cost_usd":-1,"wall_clock":-1}}`

const (
	callsThree  = `replies {"finish":"tool_calls","parts":[{"type":"tool_call","call":{"tool":"add","arguments":{}}},{"type":"tool_call","call":{"tool":"pay","arguments":{"eur":1}}},{"type":"tool_call","call":{"tool":"pay","arguments":{"eur":3}}}],"rule_matches":[[],[0],[0]]}`
	asksTwice   = `calls ask_user {"question":"?"} | add {} | ask_user {"question":"Which?","choices":["a","b"]}`
	parksOnTwo  = `calls add {} | await_resumption {"reason":"why","conditions":{"any":[{"after":"2h"},{"event":{"topic":"t"}}]}}`
	callsDenied = `replies {"finish":"tool_calls","parts":[{"type":"tool_call","call":{"tool":"add","arguments":{}}},{"type":"tool_call","call":{"tool":"pay","arguments":{}}}],"rule_matches":[[],[0]]}`
	asOutput    = `replies {"finish":"tool_calls","output_error":"n is missing","parts":[{"type":"tool_call","call":{"tool":"finish","arguments":{}}}]}`
)

// themes are the runs that are searched through.
var themes = []theme{
	{
		name: "plain", begin: "begin go", opened: `opened {"limits":{"turns":3,"wall_clock":"1h"}}`,
		from: []string{"send {\"text\":\"hi\"}\nlong-history"},
	},
	{
		name: "sources", begin: "begin go", opened: `opened {"sources":["mcp"],"toolset":[{"name":"add"}],"limits":{"turns":2}}`,
		model: []string{"calls mcp__add {} | add {}"},
		from:  []string{"pause {}", "listed {}\ncalls mcp__add {}\nnear-limit"},
	},
	{
		name: "tools", begin: "begin go",
		opened: `opened {"toolset":[{"name":"add","read_only":true},{"name":"pay"}],"rules":[{"do":"ask","tools":["pay"],"deadline":"1h","remind":"10m"}],"parallel_tools":1,"limits":{"turns":2}}`,
		model:  []string{`calls add {"a":1} | add {"a":2} | nope {}`, callsThree},
		from:   []string{callsThree, callsThree + "\nresult t1.1 ok 1\nsealed"},
	},
	{
		name: "questions", begin: "begin go",
		opened: `opened {"tools":["ask_user","await_resumption"],"toolset":[{"name":"add"}],"client_tools":[{"name":"camera"}],"answer_timeouts":{"deadline":"1h"},"limits":{"turns":2}}`,
		model: []string{
			asksTwice, "calls camera {} | add {}", parksOnTwo, `calls await_resumption {"reason":"why"}`,
			`calls await_resumption {"reason":"why","conditions":{"after":"2h","on_timeout":"cancel"}}`,
		},
		from: []string{asksTwice + "\nsealed", parksOnTwo + "\nsealed"},
	},
	{
		name: "children", begin: "begin go", opened: `opened {"agents":[{"agent":"b"}],"lifecycle":true,"toolset":[{"name":"add"}],"limits":{"turns":3}}`,
		model: []string{
			`calls subagent__b {"task":"one"} | add {}`, `calls subagent__b {"task":"two","background":true}`, "calls subagent_wait {}",
			`calls subagent_pause {"child":"s/b-1","reason":"later"}`, `calls subagent_stop {"child":"s/b-1"}`,
		},
		from: []string{
			"calls subagent__b {\"task\":\"one\"} | add {}\nchild-started s/b-1", "calls subagent__b {\"task\":\"two\",\"background\":true}\nchild-started s/b-1",
			"calls subagent__b {\"task\":\"two\",\"background\":true}\nchild-started s/b-1\npause {}\ncalls subagent_wait {}",
		},
	},
	{
		name: "daemon", begin: `started {"agent":"a"}`,
		opened: `opened {"daemon":{"every":"1h","queue":2,"watchdog":2,"compact":true},"toolset":[{"name":"add"}],"tools":["await_resumption"],"limits":{"turns":2,"wall_clock":"10m"}}`,
		model:  []string{"calls add {}", `calls await_resumption {"reason":"why","conditions":{"event":{"topic":"t"}}}`},
		from:   []string{"sealed\nemit @e0 {\"topic\":\"t\"}", "sealed\nemit @e0 {\"topic\":\"t\"}\nemit @e1 {\"topic\":\"t\"}\npause {}"},
	},
	{
		name: "files of a daemon", begin: `started {"agent":"a"}`,
		opened: `opened {"daemon":{"watch":["inbox"],"every":"1h","queue":1,"watchdog":1},"toolset":[{"name":"add"}]}`,
		model:  []string{"calls add {}"},
		from: []string{
			"sealed\nlooked {\"marks\":[{\"digest\":\"a\"}]}",
			"sealed\nlooked {\"marks\":[{\"digest\":\"a\"}]}\nafter 30s\ntimer",
		},
	},
	{
		name: "below", begin: born, opened: `opened {"toolset":[{"name":"add"}],"tools":["ask_user"],"agents":[{"agent":"b"}],"limits":{"turns":2}}`,
		model: []string{`calls add {} | add {"a":2}`, `calls ask_user {"question":"?"}`, `calls subagent__b {"task":"one"}`},
		from: []string{
			`ordered {"verb":"resume","known_holds":[{"session":"s","n":1}]}`,
			"ordered {\"verb\":\"resume\",\"known_holds\":[{\"session\":\"s\",\"n\":1}]}\ncalls subagent__b {\"task\":\"one\"} | add {}",
		},
	},
	{
		name: "shared", begin: "begin go", opened: `opened {"agents":[{"agent":"b"}],"lifecycle":true,"limits":{"tokens":60,"turns":6},"on_limit":"ask"}`,
		model: []string{`calls subagent__b {"task":"one"} | subagent__b {"task":"two","background":true}`, "calls subagent_wait {}"},
		from: []string{
			"calls subagent__b {\"task\":\"one\"} | subagent__b {\"task\":\"two\"}\nchild-started s/b-1\nchild-started s/b-2",
			"calls subagent__b {\"task\":\"two\",\"background\":true}\nchild-started s/b-1",
		},
	},
	{
		name: "granted", begin: bornWith, opened: `opened {"toolset":[{"name":"add"}],"agents":[{"agent":"b"}]}`,
		model: []string{"calls add {}", `calls subagent__b {"task":"one"}`},
		from:  []string{"calls add {}\nresult t1.1 ok 1", "calls subagent__b {\"task\":\"one\",\"background\":true}\nchild-started s/a-1/b-1"},
	},
	{
		name: "finish", begin: "begin go", opened: `opened {"completion":"tool","output":{"type":"object"},"require":["add"],"toolset":[{"name":"add"}],"nudges":1,"limits":{"turns":4}}`,
		model: []string{"calls add {}", asOutput},
		from:  []string{"calls add {}\nresult t1.1 ok 1"},
	},
	{
		name: "flow", begin: "begin go", opened: `opened {"flow":true,"toolset":[{"name":"look","read_only":true},{"name":"pay"}],"agents":[{"agent":"b"}],"limits":{"own_turns":9,"wall_clock":"1h"},"parallel_tools":1}`,
		flow: []string{
			`steps a look {} | b pay {}`, `steps c ask_user {"question":"?"}`, `steps d subagent__b {"task":"one"}`, `steps e await_resumption {"any":[{"after":"2h"},{"event":{"topic":"t"}}]}`,
			`steps f approve {"what":"?","subject":{"eur":1}}`, `steps g await_resumption {}`,
		},
		from: []string{
			"steps a look {} | b pay {} | c ask_user {\"question\":\"?\"} | d subagent__b {\"task\":\"one\"}\nchild-started s/b-1",
			"steps c ask_user {\"question\":\"?\"} | e await_resumption {\"after\":\"2h\"} | g await_resumption {}\nsealed",
			"steps b pay {} | d subagent__b {\"task\":\"one\"}\nchild-started s/b-1\nhalf-full",
			"steps a look {} | b pay {}\ninterrupt {}",
		},
	},
	{
		name: "flow below", begin: born, opened: `opened {"flow":true,"toolset":[{"name":"add"}],"agents":[{"agent":"b"}],"rules":[{"do":"ask","tools":["add"],"deadline":"1h"}],"on_limit":"ask","limits":{"own_turns":2}}`,
		flow: []string{`flow {"steps":[{"tool":"add","provider_id":"a","arguments":{}}],"rule_matches":[[0]]}`, `steps d subagent__b {"task":"one"}`},
		from: []string{"ordered {\"verb\":\"resume\",\"known_holds\":[{\"session\":\"s\",\"n\":1}]}\nsteps d subagent__b {\"task\":\"one\"}"},
	},
	{
		name: "checks", begin: "begin go", opened: `opened {"verify":{"checks":[{"name":"tests","tool":"run"},{"name":"rubric","judge":{"model":"j"}},{"name":"review","agent":"b","task":"look"}],"max":2},"toolset":[{"name":"add"}],"limits":{"turns":3,"tokens":60},"on_limit":"ask"}`,
		model: []string{"calls add {}"},
		from: []string{
			"says one", "says one\njudged t1.check1 {} {\"verdict\":\"accept\"}",
			"says one\njudged t1.check1 {} {\"verdict\":\"accept\"}\njudged t1.check2 {} {\"verdict\":\"accept\"}\nchild-started s/b-1",
			"says one\njudged t1.check1 {} {\"verdict\":\"veto\"}\nsays two",
		},
	},
	{
		name: "checks below", begin: bornWith, opened: `opened {"verify":{"checks":[{"name":"rubric","judge":{"model":"j"}},{"name":"review","agent":"b","task":"look"}],"max":2},"agents":[{"agent":"b"}],"lifecycle":true}`,
		from: []string{"says one", "calls subagent__b {\"task\":\"one\",\"background\":true}\nchild-started s/a-1/b-1\nsays one"},
	},
	{
		name: "checks of a daemon", begin: "begin go", opened: `opened {"verify":{"checks":[{"name":"tests","tool":"run","on_error":"hold"}],"max":2},"daemon":{"queue":2},"completion":"tool","limits":{"turns":3}}`,
		from: []string{"calls finish {}", "calls finish {}\nresult t1.check1 failed no"},
	},
	{
		name: "limits", begin: "begin go", opened: `opened {"toolset":[{"name":"add"}],"limits":{"turns":1,"wall_clock":"1m"},"on_limit":"ask","on_loop":"ask","answer_timeouts":{"deadline":"1h","default":"continue"}}`,
		model: []string{"calls add {}", "calls add {} | add {} | add {} | add {} | add {} | add {}"},
		from:  []string{"calls add {}\nresult t1.1 ok 1\nsealed"},
	},
}

// themesOfPolicies are the runs whose agents name recovery, loop detection, lessons and a limit that adapts.
var themesOfPolicies = []theme{
	{
		name: "recovery", begin: "begin go",
		opened: `opened {"toolset":[{"name":"add"}],"agents":[{"agent":"b"}],"lifecycle":true,"completion":"tool","lessons":true,"limits":{"turns":4},"on_limit":"finalize","recovery":{"unable":"handoff","tool_error":{"do":"retry","then":"ask"},"no_progress":{"do":"correct","then":"handoff"},"loop":"handoff"},"loop_detection":{"idle":2}}`,
		model: []string{
			"calls add {}", `calls return_unable {"blockers":["b"],"rationale":"r"}`, "calls add {} | add {} | add {} | add {} | add {} | add {}",
			`calls subagent__b {"task":"two","background":true}`, `replies {"finish":"content_filter","parts":[{"type":"text","text":"no"}]}`,
		},
		from: []string{
			"calls subagent__b {\"task\":\"two\",\"background\":true}\nchild-started s/b-1\ncalls return_unable {\"blockers\":[\"b\"],\"rationale\":\"r\"}",
			"calls subagent__b {\"task\":\"one\"} | add {}\nchild-started s/b-1",
			"calls add {}\nresult t1.1 failed no\npause {}",
		},
	},
	{
		name: "recovery that asks", begin: "begin go",
		opened: `opened {"toolset":[{"name":"add"},{"name":"pay"}],"rules":[{"do":"deny","tools":["pay"]}],"fallbacks":["n"],"limits":{"adaptive":{"initial":1,"max":3,"shrink_by":1},"wall_clock":"1m"},"loop_detection":{"cycles":2,"results":2,"parallel":2},"recovery":{"refusal":{"do":"fallback","then":"ask"},"provider":{"do":"retry","then":"handoff"},"loop":{"do":"compact","then":"ask"},"truncated":{"do":"correct","then":"handoff"},"policy_violation":"ask","limit_time":"finalize","limit_turns":"ask"}}`,
		model: []string{
			"calls add {}", callsDenied, "calls add {} | add {}", `replies {"finish":"content_filter","parts":[{"type":"text","text":"no"}]}`,
			`replies {"finish":"length","parts":[{"type":"text","text":"no"}]}`, "fails provider_auth",
		},
		from: []string{"calls add {}\nresult t1.1 ok 1", callsDenied + "\nsealed", "calls add {}\nlong-history"},
	},
}

// hooked are hooks around suspensions and resumes.
const hooked = `"hooks":{"before_suspension":{"checks":[{"name":"quiet","tool":"may_stop"}]},"after_suspension":{"checks":[{"name":"post","tool":"post"}]},"before_resume":{"checks":[{"name":"gate","tool":"may_go"}]},"after_resume":{"checks":[{"name":"tell","tool":"told"}]}}`

// twiceAdded are two turns that make the same call, which a check of calls lets pass.
const twiceAdded = "calls add {}\njudged t1.check1 {} {\"verdict\":\"accept\"}\nresult t1.1 ok 1\ncalls add {}\njudged t2.check2 {} {\"verdict\":\"accept\"}\nresult t2.1 ok 1\n"

// themesOfHooks are the runs whose agents have them.
var themesOfHooks = []theme{
	{
		name: "hooks", begin: "begin go", opened: `opened {"tools":["await_resumption","ask_user"],"toolset":[{"name":"add"}],"limits":{"turns":4},` + hooked + `}`,
		model: []string{"calls add {}", `calls await_resumption {"reason":"why","conditions":{"any":[{"after":"2h"},{"event":{"topic":"t"}}]}}`, `calls ask_user {"question":"?"}`},
		from: []string{
			"calls add {}\npause {}\nresult t1.1 ok 1", "interrupt {}\ncalls add {}\nsealed\njudged t1.check1 {} {\"verdict\":\"accept\"}\nresume update @r-1 {}",
			"calls await_resumption {\"reason\":\"why\",\"conditions\":{\"after\":\"2h\"}}\njudged t1.check1 {} {\"verdict\":\"accept\"}\nsealed\njudged t1.check2 {} {\"verdict\":\"accept\"}\nresume {}",
		},
	},
	{
		name: "hooks before calls", begin: "begin go",
		opened: `opened {"toolset":[{"name":"add"},{"name":"pay"}],"rules":[{"do":"ask","tools":["pay"]}],"limits":{"turns":4},"verify":{"checks":[{"name":"tests","tool":"run","max":1}]},"hooks":{"before_calls":{"checks":[{"name":"plan","tool":"look"},{"name":"rubric","judge":{"model":"j"}}],"max":2}},"judges":[{"model":"j","price":{"input":1,"output":2}}]}`,
		model:  []string{"calls add {}", "calls pay {} | add {}"},
		from:   []string{"calls add {}\njudged t1.check1 {} {\"verdict\":\"veto\"}", "calls add {}\njudged t1.check1 {} {\"verdict\":\"accept\"}\ninterrupt {}"},
	},
	{
		name: "judges that are passed over", begin: "begin go",
		opened: `opened {"toolset":[{"name":"add"}],"limits":{"turns":4,"tokens":60},"hooks":{"before_run":{"checks":[{"name":"guard","judge":{"model":"j"}}]},"before_calls":{"checks":[{"name":"rubric","judge":{"model":"j"},"skip":{"stalled":true,"last_turns":1,"attempts":1}}],"max":2}},"judges":[{"model":"j","price":{"input":1,"output":2}}]}`,
		model:  []string{"calls add {}", "calls add {} | add {} | add {}"},
		from: []string{
			"judged t0.check1 {} {\"verdict\":\"accept\"}\ncalls add {}\njudged t1.check2 {} {\"verdict\":\"veto\"}",
			"judged t0.check1 {} {\"verdict\":\"accept\"}\ncalls add {} | add {} | add {}",
			"judged t0.check1 {} {\"verdict\":\"accept\"}\ncalls add {}\njudged t1.check2 {} {\"verdict\":\"accept\"}\nresult t1.1 ok 1\ncalls add {}\njudged t2.check3 {} {\"verdict\":\"accept\"}\nresult t2.1 ok 1",
		},
	},
	{
		name: "judges of a stalled run", begin: "begin go",
		opened: `opened {"toolset":[{"name":"add"},{"name":"pay"}],"rules":[{"do":"ask","tools":["pay"]}],"limits":{"turns":4},"verify":{"checks":[{"name":"tests","tool":"run"},{"name":"rubric","judge":{"model":"j"},"cadence":{"when":"stalled","every":1,"max_invocations":2}}],"max":2},"hooks":{"before_calls":{"checks":[{"name":"plan","tool":"look"}],"max":2}},"judges":[{"model":"j","price":{"input":1,"output":2}}]}`,
		model:  []string{"calls add {} | pay {}"},
		from: []string{
			twiceAdded + "calls add {} | pay {}", twiceAdded + "calls add {}\njudged t3.check3 {} {\"verdict\":\"veto\"}",
			twiceAdded + "calls add {}\njudged t3.check3 {} {\"verdict\":\"accept\"}",
		},
	},
	{
		name: "hooks after a turn", begin: "begin go",
		opened: `opened {"toolset":[{"name":"add"}],"fallbacks":["n"],"limits":{"adaptive":{"initial":1,"max":3}},"hooks":{"after_turn":{"checks":[{"name":"look","tool":"look_at"}]}}}`,
		model:  []string{"calls add {}"},
		from: []string{
			"calls add {}\nresult t1.1 ok 1\nresult t1.check1 ok {\"action\":\"extend\",\"by\":1,\"next\":{\"model\":\"n\",\"tools\":[]}}",
			"calls add {}\nresult t1.1 ok 1\nresult t1.check1 ok {\"action\":\"ask\",\"reason\":\"?\"}", "calls add {}\nresult t1.1 ok 1\nresult t1.check1 ok {\"action\":\"dance\"}",
			"calls add {}\nresult t1.1 ok 1\nresult t1.check1 ok {\"action\":\"stop\"}", "calls add {}\npause {}\nresult t1.1 ok 1",
		},
	},
	{
		name: "hooks below", begin: born, opened: `opened {"refresh_on_resume":true,"toolset":[{"name":"add"}],"agents":[{"agent":"b"}],"lifecycle":true,"limits":{"turns":3},` + hooked + `}`,
		model: []string{"calls add {}", `calls subagent__b {"task":"one"}`},
		from:  []string{`ordered {"verb":"resume","known_holds":[{"session":"s","n":1}]}`, "pause {}\nordered {\"verb\":\"resume\",\"known_holds\":[{\"session\":\"s\",\"n\":1}]}"},
	},
	{
		name: "hooks of a flow", begin: "begin go", opened: `opened {"flow":true,"toolset":[{"name":"look","read_only":true}],` + hooked + `}`,
		flow: []string{`steps a look {}`, `steps c ask_user {"question":"?"}`, `steps g await_resumption {}`},
		from: []string{"steps a look {}\npause {}\nresult t1.1 ok 1"},
	},
	{
		name: "hooks of a daemon", begin: "begin go", opened: `opened {"daemon":{"queue":2},"refresh_on_resume":true,"toolset":[{"name":"add"}],` + hooked + `}`,
		model: []string{"calls add {}"},
		from:  []string{"says done\nsealed\nresume update @r-1 {}", "calls add {}\npause {}\nresult t1.1 ok 1"},
	},
}

// found is a place of a search and the way to it.
type found struct {
	place
	from  *found
	lines string
	depth int
}

// way is the scenario that leads here: no shorter one does.
func (f *found) way() string {
	if f == nil || f.lines == "" {
		return ""
	}
	return f.from.way() + f.lines + "\n"
}

// story is the way as a story's inputs.
func (f *found) story() (all string) {
	for line := range strings.Lines(f.way()) {
		all += "> " + line
	}
	return all
}

// search goes through a theme breadth first. Places are known by their essence.
type search struct {
	t     terse
	theme theme
	seen  map[string]bool
	leads map[string]bool // to an end, where nobody keeps the run from it
	at    *found          // what was tried last
}

// terse is a test that is not told of helpers, which costs more than what they check.
type terse struct{ of *testing.T }

func (t terse) Errorf(format string, args ...any) { t.of.Errorf(format, args...) }
func (t terse) FailNow()                          { t.of.FailNow() }

// Whatever a run can come to within a few inputs, of all that can be said to it and
// of all that can come of what it asked for: the invariants hold, a refusal changes
// nothing, no state is a dead end, a cancel leads to an end, an old state is not
// touched by what follows it, and one that went over the wire continues alike.
func TestEveryInputAtEveryState(t *testing.T) {
	for _, th := range slices.Concat(themes, themesOfPolicies, themesOfHooks) {
		t.Run(th.name, func(t *testing.T) {
			t.Parallel()
			s := &search{t: terse{t}, theme: th, seen: map[string]bool{}, leads: map[string]bool{}}
			looked, depth := s.run(*most)
			t.Logf("looked at %d of the %d states that were found: at all that %d inputs lead to from one of its %d beginnings", looked, len(s.seen), depth, len(th.from)+1)
			require.Positive(t, depth)
		})
	}
}

// run looks at so many states at most, and returns at how many it did, and how many
// inputs lead to the last at all of which it did.
func (s *search) run(most int) (looked, depth int) {
	defer func() {
		if s.t.of.Failed() {
			s.t.of.Logf("-- story --\n%s", s.at.story())
		}
	}()
	for queue := s.begins(); len(queue) > 0 && looked < most; looked++ {
		at := queue[0]
		queue = append(queue[1:], s.look(at)...)
		at.state, depth = State{}, at.depth // only the way to it is wanted any more
		if len(queue) > 0 {
			depth = queue[0].depth - 1
		}
	}
	return looked, depth
}

// begins are the places where the search begins: where the run does, and where it
// has something in hand.
func (s *search) begins() []*found {
	none := &found{place: place{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}}
	all := []*found{s.try(none, s.theme.begin)}
	for _, lines := range s.theme.from {
		at := s.try(none, s.theme.begin+"\n"+s.theme.opened+"\n"+lines)
		require.NotNil(s.t, at, lines)
		all = append(all, at)
	}
	for _, at := range all {
		at.from, at.depth = nil, 0
	}
	return all
}

// look makes every move at a place, and returns those places that are new.
func (s *search) look(at *found) (next []*found) {
	raw := s.wire(at.state)
	back := *at
	back.state = State{}
	require.NoError(s.t, json.Unmarshal(raw, &back.state))
	require.Equal(s.t, string(raw), string(s.wire(back.state)), "it comes back as it went")
	s.lead(&back)
	if !back.state.outcomeDecided() {
		end := s.try(&back, "cancel {}")
		require.NotNil(s.t, end, "a cancel is taken")
		s.lead(end)
		if !end.state.outcomeDecided() {
			require.True(s.t, end.state.cancelling() && end.state.End.Grace != nil)
			end = s.try(end, "cancel {}")
			require.NotNil(s.t, end, "a second cancel is taken")
		}
		require.True(s.t, end.state.outcomeDecided())
		s.lead(end)
	}
	for _, lines := range s.theme.moves(at.place) {
		to := s.try(&back, lines)
		if to == nil {
			continue
		}
		if key := essence(to.place); !s.seen[key] && to.state.Phase != RunEnded {
			s.seen[key] = true
			to.from = at
			next = append(next, to)
		}
	}
	require.Equal(s.t, string(raw), string(s.wire(back.state)), "what followed has changed it")
	return next
}

// try makes a move; nil if it is refused.
func (s *search) try(at *found, lines string) *found {
	p := &player{t: s.t, state: at.state, now: at.now, full: at.full, half: at.half, near: at.near}
	to := &found{from: at, lines: lines, depth: at.depth + 1}
	s.at = to
	for line := range strings.SplitSeq(lines, "\n") {
		if p.line(line); p.wrong != nil {
			require.Contains(s.t, refusals, agent.CodeOf(p.wrong), "%v", p.wrong)
			return nil
		}
	}
	to.place = place{p.state, p.now, p.full, p.half, p.near}
	return to
}

// refusals are the codes of what a machine may refuse.
var refusals = []agent.Code{
	agent.CodeNotSuspended, agent.CodeNeedsAnswer, agent.CodeHeldByParent, agent.CodeStale, agent.CodeClosed, agent.CodeNotFound, agent.CodeInvalidInput, agent.CodeQueueFull,
}

// lead lets a run continue by itself, and lifts what keeps it: it comes to its end, or
// idles.
func (s *search) lead(at *found) {
	const bound = 80
	var way []string
	for n := 0; ; n++ {
		require.Less(s.t, n, bound, "it does not come to an end")
		key := essence(at.place)
		if s.leads[key] || at.state.Phase == RunEnded || at.state.idling() && at.state.Status() == agent.StatusSuspended && len(at.state.Holds.List) == 0 {
			break
		}
		way = append(way, key)
		next := s.theme.due(at.place)
		if lifts := lifts(at.state); len(lifts) > 0 && (len(next) == 0 || strings.HasPrefix(next[0], "after")) {
			next = lifts
		}
		require.NotEmpty(s.t, next, "nothing leads on from here")
		to := s.try(at, next[0])
		require.NotNil(s.t, to, "what it asked for is not taken: %s", next[0])
		at = to
	}
	for _, key := range way {
		s.leads[key] = true
	}
}

func (s *search) wire(state State) []byte {
	raw, err := json.Marshal(state)
	require.NoError(s.t, err)
	return raw
}

// A state has nothing that is not written: it is all that a new execution knows.
func TestAStateIsWrittenWhole(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(of reflect.Type) {
		switch of.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			walk(of.Elem())
		case reflect.Struct:
			if seen[of] || of.PkgPath() != reflect.TypeFor[State]().PkgPath() {
				return
			}
			seen[of] = true
			for f := range of.Fields() {
				written := f.IsExported() && (f.Anonymous || f.Tag.Get("json") != "-" && f.Tag.Get("json") != "")
				require.True(t, written || of == reflect.TypeFor[Located](), "%s.%s", of, f.Name)
				walk(f.Type)
			}
		}
	}
	walk(reflect.TypeFor[State]())
	require.Greater(t, len(seen), 8)
}
