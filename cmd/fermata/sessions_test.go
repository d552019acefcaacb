package main

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/render"
	"github.com/fermata-agents/fermata/testsuite"
)

// thrifty pays twice and says so, and may have two turns a run.
func thrifty() role {
	done := testsuite.Reply{Text: "All is paid.", Repeat: 5}
	return role{
		agent.Definition{Name: "payer", Tools: []string{"pay"}, Limits: agent.Limits{Turns: 2}},
		[]testsuite.Reply{{Match: "^again$", Text: "As you say."}, calls("pay", map[string]any{"eur": 1}), calls("pay", map[string]any{"eur": 2}), done},
	}
}

// failed is a session with a run that has paid twice and failed, and its
// checkpoints, the first first.
func (s *stage) failed(name string) (session string, points []string) {
	s.t.Helper()
	run := s.begin(name, "payer", nil)
	require.Equal(s.t, string(agent.CodeLimitTurns), s.rests(run).Reason)
	page, err := s.Checkpoints(s.t.Context(), run.Session, nil)
	require.NoError(s.t, err)
	for _, p := range page.Items {
		points = append([]string{p.ID}, points...)
	}
	require.Len(s.t, points, 3)
	return run.Session, points
}

// outlines is each line of an output as JSON.
func outlines[T any](t *testing.T, out string) (list []T) {
	t.Helper()
	for line := range strings.Lines(out) {
		var v T
		require.NoError(t, json.Unmarshal([]byte(line), &v), line)
		list = append(list, v)
	}
	return list
}

// A session lists its runs and their checkpoints, in pages, and reads each (HL-119,
// HX-03, HX-64, HX-65).
func TestRunsAndCheckpoints(t *testing.T) {
	s := scripted(t, thrifty()).works(pay())
	id, points := s.failed("a")
	record := lastLine[agent.RunRecord](t, s.run("runs", id, "--json").out)
	require.Equal(t, []any{agent.StatusFailed, 2}, []any{record.Status, record.Turns})
	r := s.run("runs", id)
	require.Zero(t, r.exit, r.err)
	require.Regexp(t, `^RUN +AGENT +STATUS +TURNS +COST +STARTED +ENDED +FORKED FROM\n`+record.Run+` +payer +failed \(limit_turns\) +2 .* -\n$`, r.out)

	r = s.run("checkpoints", id)
	require.Zero(t, r.exit, r.err)
	require.Regexp(t, `(?s)^CHECKPOINT .*\n`+points[2]+` +\S+ +2 .*\n`+points[1]+` +\S+ +1 .*\n`+points[0]+` +\S+ +0 .*\n$`, r.out)
	page := lastLine[fermata.CheckpointPage](t, s.run("checkpoints", id, "--limit", "1", "--offset", "1", "--run", render.ShortRun(record.Run), "--json").out)
	require.Equal(t, []any{points[1], 3, true}, []any{page.Items[0].ID, page.Total, page.More})
	most := strconv.Itoa(math.MaxInt)
	page = lastLine[fermata.CheckpointPage](t, s.run("checkpoints", id, "--limit", most, "--offset", "1", "--json").out)
	require.Equal(t, []any{points[1], 3, false}, []any{page.Items[0].ID, page.Total, page.More})
	page = lastLine[fermata.CheckpointPage](t, s.run("checkpoints", id, "--offset", most, "--json").out)
	require.Equal(t, fermata.CheckpointPage{Items: []agent.Checkpoint{}, Total: 3}, page)
	r = s.run("checkpoints", id, "--limit", "2")
	require.Contains(t, r.err, "2 of 3: see --offset 2")

	r = s.run("checkpoints", id, points[1])
	require.Zero(t, r.exit, r.err)
	require.Regexp(t, `(?s)^checkpoint +`+points[1]+`\nrun +`+record.Run+`\nagent +payer\nturn +1, at .*tool +pay: 1 call, 1 ok\n.*\n\n== user\n│ go\n\n== assistant.*\[result t1\.1, ok\]\n│ paid 1 EUR\n$`, r.out)
	require.Len(t, lastLine[checkpointLine](t, s.run("checkpoints", id, points[1], "--json").out).Said, 3)

	r = s.run("diff", id, points[1], points[2])
	require.Zero(t, r.exit, r.err)
	require.Regexp(t, `^`+points[1]+` → `+points[2]+` · 3 messages in common\n\+ == assistant .*\n\+ \[call t2\.1\] pay\n(\+ │ .*\n)+\+ == tool\n\+ \[result t2\.1, ok\]\n\+ │ paid 2 EUR\n$`, r.out)
	r = s.run("diff", id, points[2], points[1])
	require.Contains(t, r.out, "\n- [result t2.1, ok]\n- │ paid 2 EUR\n")
	require.Len(t, lastLine[agent.CheckpointDiff](t, s.run("diff", id, points[2], points[1], "--json").out).Removed, 2)

	s.fails(2, "--limit must be positive", "checkpoints", id, "--limit", "0")
	s.fails(2, "offset and limit must be positive", "checkpoints", id, "--offset", "-1")
	s.fails(2, "needs a session and two checkpoints", "diff", id, points[1])
	s.fails(6, "[not_found]", "checkpoints", id, "--run", "ffffffff")
	s.fails(6, "[not_found]", "checkpoints", id, agent.CheckpointID(id, 1000))
	s.fails(2, `"latest" names no checkpoint`, "diff", id, points[1], "latest")
	for _, command := range []string{"runs", "checkpoints"} {
		s.fails(6, "[not_found]", command, s.session("nobody"))
	}
}

// Commands refuse a checkpoint that was copied from another session, and say where this session's are
// (HX-28).
func TestACheckpointThatWasCopied(t *testing.T) {
	s := scripted(t, thrifty()).works(pay())
	a, points := s.failed("a")
	b, _ := s.failed("b")
	copied := points[1]
	for _, args := range [][]string{
		{"checkpoints", b, copied}, {"diff", b, "cp-0", copied}, {"diff", b, copied, "cp-0"},
		{"fork", b, copied, "--yes"}, {"fork", b, copied, "--plan"}, {"fork", b, copied, "--new", "--yes"}, {"retry", b, copied, "--yes"},
	} {
		s.fails(6, copied+" is a checkpoint of another session, and not of "+b+"; see fermata checkpoints "+b, args...)
	}
	number := copied[:strings.LastIndex(copied, "-")]
	s.fails(2, number+" does not say whose checkpoint it is; that of session "+a+" is "+copied, "fork", a, number, "--plan")
	require.Len(t, outlines[agent.RunRecord](t, s.run("runs", b, "--json").out), 1)
}

// A retry says first what it keeps and what may happen again. The limit that ended the run begins anew
// (HX-43, HX-44, HX-48).
func TestRetry(t *testing.T) {
	s := scripted(t, thrifty()).works(pay())
	id, points := s.failed("a")
	r := s.run("retry", id, "--plan")
	require.Zero(t, r.exit, r.err)
	require.Regexp(t, `^retry from `+points[2]+` \(turn 2 of run \S+\); the model sees 5 messages\nkept: pay t1\.1 \(ok\), pay t2\.1 \(ok\)\n$`, r.out)
	plan := lastLine[forkPlanLine](t, s.run("retry", id, "--start", "--plan", "--json").out)
	require.Equal(t, []any{"plan", id, "payer", points[0], 0, 2}, []any{plan.Type, plan.Session, plan.Agent, plan.Checkpoint.ID, len(plan.Kept), len(plan.MayRepeat)})
	require.Len(t, outlines[agent.RunRecord](t, s.run("runs", id, "--json").out), 1, "a plan does nothing")

	// Nothing may happen again: nobody is asked.
	r = s.run("retry", id)
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.out, "All is paid.\ncompleted · 1 turn ·")
	require.Contains(t, s.run("runs", id).out, " "+points[2]+" (retry)\n")
	record, shown := lastLine[agent.RunRecord](t, s.run("runs", id, "--json").out), lastLine[agent.RunStatus](t, s.run("show", id, "--json").out)
	require.Equal(t, []int{1, 1, 3}, []int{record.Turns, shown.Turns, shown.Turn})
	r = s.run("show", id)
	require.Regexp(t, `(?m)^task +go$`, r.out)
	require.Regexp(t, `(?m)^turn +3, 1 turn of this run$`, r.out)
	s.fails(6, "[stale]", "retry", id)

	// Here the payments may.
	id, points = s.failed("b")
	s.fails(2, "[invalid_input] this may repeat 2 calls of tools that change something, and there is no terminal to ask: add --yes", "retry", id, "--start")
	s.fails(2, "1 call of tools", "retry", id, points[1], "--json")
	r = s.run("retry", id, "--start", "--message", "again", "--yes")
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.out, "may happen again: pay t1.1 of ")
	require.Contains(t, r.out, "As you say.\ncompleted")
	s.fails(2, "exclude each other", "retry", id, points[1], "--start")
	id, points = s.failed("c")
	require.Zero(t, s.run("retry", id, points[1], "--yes").exit)
	require.Contains(t, s.run("runs", id).out, " "+points[1]+" (retry)\n")
	s.fails(2, "--edit needs --message", "retry", id, "--edit")
	s.fails(2, "--message is blank", "retry", id, "--message", " ")
	s.fails(6, "[not_found]", "retry", s.session("nobody"))
}

func TestFork(t *testing.T) {
	s := scripted(t, thrifty()).works(pay())
	id, points := s.failed("a")
	s.fails(2, "this may repeat 1 call of tools that change something", "fork", id, points[1])
	d := s.sits("fork", id, points[1])
	d.sees("fork from "+points[1]).sees("kept: pay t1.1 (ok)\nmay happen again: pay t2.1 (ok)\n").answers("start anyway? y(es), n(o): ", "n")
	require.Contains(t, d.ends(2).err, "nothing was started")
	d = s.sits("fork", id, points[1])
	d.answers("start anyway? y(es), n(o): ", "y").sees("paid 2 EUR")
	require.Contains(t, d.ends(0).out, "All is paid.\ncompleted")
	forked := lastLine[agent.RunRecord](t, s.run("runs", id, "--json").out).Forked
	require.Equal(t, agent.Forked{Session: id, Run: forked.Run, Checkpoint: points[1]}, *forked)

	r := s.run("fork", id, points[1], "--new", "--as", s.session("b"), "--message", "again", "--yes", "--json", "--by", "ana")
	require.Zero(t, r.exit, r.err)
	first, _, _ := strings.Cut(r.out, "\n") // the next lines have other types
	plan := lastLine[forkPlanLine](t, first)
	require.Equal(t, []any{"plan", s.session("b"), 1}, []any{plan.Type, plan.Session, len(plan.Kept)})
	o := lastLine[agent.Outcome](t, r.out)
	require.Equal(t, []any{s.session("b"), "As you say."}, []any{o.Session, o.Text})
	require.Contains(t, s.run("runs", s.session("b")).out, points[1]+" of "+id+"\n")

	// What was said is said in another way.
	r = s.run("fork", id, "--edit", "--message", "again", "--yes")
	require.Zero(t, r.exit, r.err)
	require.Regexp(t, `^== user\n│ again\n\n== assistant \S+\n│ As you say\.\n$`, s.run("transcript", id).out)

	r = s.run("fork", id, "--message", "again", "--detach", "--new")
	require.Zero(t, r.exit, r.err)
	require.Regexp(t, `\n\S+: run \S+ starts\n$`, r.out)
	s.fails(2, "--as names the session that --new starts", "fork", id, "--as", "x")
	s.fails(2, "exclude each other", "fork", id, points[0], "--start")
	s.fails(2, "the model has nothing to answer, so that a message is needed: say with --message TEXT what to do", "fork", id)
}

// A run keeps of those before it what it is told to (HA-101).
func TestRunCarries(t *testing.T) {
	s := scripted(t, talker()).works(pay(), idle())
	id := s.session("a")
	for _, carry := range []agent.Carry{agent.CarryInherit, agent.CarryReset, agent.CarryCompact} {
		r := s.run("run", "talker", "hello", "--session", id, "--carry", string(carry))
		require.Zero(t, r.exit, r.err)
		require.Equal(t, carry, lastLine[agent.RunRecord](t, s.run("runs", id, "--json").out).Carry)
	}
	require.Contains(t, s.run("transcript", id).out, "== runtime (summary)\n")
	s.fails(2, `--carry must be inherit, compact or reset, not "all"`, "run", "talker", "hello", "--session", id, "--carry", "all")
}

// A listing tells what a live run waits for, and its checkpoints what it is at
// (HL-92, HX-42).
func TestListWaitsFor(t *testing.T) {
	s := scripted(t, talker()).works(pay(), idle())
	id := s.session("a")
	require.Equal(t, 3, s.run("run", "talker", "ask", "--session", id).exit)
	query := "WorkflowId = '" + id + "'"
	require.Eventually(t, func() bool {
		return strings.Contains(s.run("ls", "--query", query).out, " input_required, question ")
	}, patience, 50*time.Millisecond)
	require.Equal(t, []string{"input_required", "question"}, lastLine[fermata.RunInfo](t, s.run("ls", "--query", query, "--json").out).WaitsFor)
	require.Contains(t, s.run("checkpoints", id).out, "  t1.1 ask_user  ", "what has no result yet")
	s.fails(6, "[busy] session "+id+" has a live run", "fork", id)
	s.fails(6, "[stale]", "retry", id)
	require.Zero(t, s.run("answer", id, "this one", "--request", "q-1").exit)
	require.Zero(t, s.run("wait", id).exit)
	require.Eventually(t, func() bool {
		l := lastLine[fermata.RunInfo](t, s.run("ls", "--query", query, "--json").out)
		return l.Status == agent.StatusCompleted && len(l.WaitsFor) == 0
	}, patience, 50*time.Millisecond)
}
