package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/devserver"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/worker"
)

// policies is a server whose runs continue as new after few events, with the runs of all rows.
type policies struct {
	*stage
	*policyWorld
	runs map[string]*client.Run
}

// newExecutionAt is after how many events the server suggests a new execution. A run of a row has more.
const newExecutionAt = 30

// For each policy: its worker is killed with -9 while the policy works, and a worker of another build
// goes on, whose agents name no policy. Another run is interrupted there, continues as new, and is
// resumed under the other build. Both come to the same end as a run to which nothing happens, pay what
// that pays, and have what the policy keeps; the killed one has the same conversation, too. Forks from
// before and after the policy acted end, have the policy's state of their point, and leave the run as
// it was. The next run of a session has what the policy keeps for it. The history of each execution replays.
func TestEveryCrashOfEveryPolicy(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	p := newPolicies(t)
	first := p.build(t, "a")
	p.start(t, columnCalm)
	for _, row := range policyRows() {
		t.Run(row.name+" "+columnCalm, func(t *testing.T) { p.ends(t, row, columnCalm) })
	}
	p.start(t, columnHold)
	for _, row := range policyRows() {
		p.interrupt(t, row)
	}
	for _, row := range policyRows() {
		t.Run(row.name+" fork", func(t *testing.T) { p.forks(t, row) })
	}
	first.Stop()

	doomed := p.process(t)
	p.start(t, columnKill)
	for _, row := range policyRows() {
		p.awaits(t, row, columnKill)
	}
	kill(doomed)

	p.build(t, "b")
	p.resume(t)
	for _, row := range policyRows() {
		for _, column := range []string{columnHold, columnKill} {
			t.Run(row.name+" "+column, func(t *testing.T) { p.ends(t, row, column) })
		}
	}
	for _, row := range policyRows() {
		for _, column := range []string{columnCalm, columnHold, columnKill, columnAfter} {
			if row.next != nil {
				t.Run(row.name+" next "+column, func(t *testing.T) { p.next(t, row, column) })
			}
		}
	}
	p.replays(t)
}

func newPolicies(t *testing.T) *policies {
	server, err := devserver.Start(t.Context(), &devserver.Options{InMemory: true, ContinueAsNewAt: newExecutionAt})
	require.NoError(t, err)
	t.Cleanup(server.Stop)
	s, dir := on(t, server), t.TempDir()
	s.dir = stored(t, dir)
	s.Client = client.New(s.temporal, &client.Options{TaskQueue: s.queue, Store: s.dir})
	return &policies{s, &policyWorld{Addr: server.Addr(), Queue: s.queue, Dir: dir}, map[string]*client.Run{}}
}

// build starts a worker of a build. Worker Versioning is not used: its own workflows would continue as
// new, too, after few events.
func (p *policies) build(t *testing.T, build string) *worker.Worker {
	t.Helper()
	o, done, err := p.options(build, p.dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, done()) })
	return p.open(t, o)
}

// process starts a worker process of build "a".
func (p *policies) process(t *testing.T) *exec.Cmd {
	t.Helper()
	spec, err := json.Marshal(p.policyWorld)
	require.NoError(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), policiesEnv+"="+string(spec))
	ready(t, cmd)
	return cmd
}

// start starts a run of each row.
func (p *policies) start(t *testing.T, column string) {
	t.Helper()
	// The command of a check can't know its session.
	require.NoError(t, os.WriteFile(filepath.Join(p.Dir, "block"), []byte(p.reached(policySession("check_command", column))), 0o600))
	if column == columnCalm {
		require.NoError(t, os.Remove(filepath.Join(p.Dir, "block")))
	}
	for _, row := range policyRows() {
		session := policySession(row.name, column)
		run, err := p.Start(t.Context(), row.name, "go", &client.StartOptions{Session: session, By: session, Judge: row.judge})
		require.NoError(t, err)
		p.runs[session] = run
	}
}

// awaits waits until a run is at its row's point.
func (p *policies) awaits(t *testing.T, row policyRow, column string) {
	t.Helper()
	session := policySession(row.name, column)
	switch {
	case row.at == "waits":
		require.Equal(t, agent.SuspensionInputRequired, p.suspended(t, p.runs[session]).Kind, session)
		return
	case row.at == string(agent.PointBeforeResume): // nobody waits for the answer, which comes after the row's point
		p.suspended(t, p.runs[session])
		require.NoError(t, signals.Signal(t.Context(), p.temporal, session, agent.ResumeCommand{Message: "Go on."}))
	}
	require.Eventually(t, func() bool { _, err := os.Stat(p.reached(session)); return err == nil }, patience, 20*time.Millisecond, session)
}

// interrupt holds a run at its row's point.
func (p *policies) interrupt(t *testing.T, row policyRow) {
	t.Helper()
	session := policySession(row.name, columnHold)
	p.awaits(t, row, columnHold)
	p.say(t, p.runs[session], agent.InterruptCommand{Grace: agent.Duration(time.Second)})
	require.NotEmpty(t, p.suspended(t, p.runs[session]).Holds, row.name)
}

// resume lets the held runs go on, each in a new execution: an event that nobody waits for makes its
// history longer.
func (p *policies) resume(t *testing.T) {
	t.Helper()
	held := map[string]string{} // executions, by session
	for _, row := range policyRows() {
		session := policySession(row.name, columnHold)
		if held[session] = p.current(t, session); row.stays {
			held[session] = ""
		}
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		for session, execution := range held {
			if p.current(t, session) == execution {
				assert.NoError(c, signals.Signal(t.Context(), p.temporal, session, agent.EmitCommand{Topic: "nobody.waits"}))
				continue
			}
			delete(held, session)
			p.say(t, p.runs[session], agent.ResumeCommand{})
		}
		assert.Empty(c, held)
	}, patience, 100*time.Millisecond)
}

// ends checks that a run comes to its row's end, and that it has the conversation of the calm one.
func (p *policies) ends(t *testing.T, row policyRow, column string) {
	session := policySession(row.name, column)
	if row.says != "" {
		var answer agent.Command = agent.SendCommand{Text: row.says}
		if asked := p.suspended(t, p.runs[session]).Requests; len(asked) > 0 {
			answer = agent.AnswerCommand{Request: asked[0].ID, Text: row.says}
		}
		p.say(t, p.runs[session], answer)
	}
	if slices.Contains(row.resumes, column) {
		p.suspended(t, p.runs[session])
		p.say(t, p.runs[session], agent.ResumeCommand{Message: "Go on."})
	}
	out := p.result(t, p.runs[session])
	want := row.end
	if column == columnHold && row.held != nil {
		row.held(&want)
	}
	end := p.end(t, row, session, session, out)
	require.Equal(t, want, end, "%+v", out.Error)
	require.True(t, row.kept == nil || row.kept(p.lastRequest(session), end), "the run has what the policy keeps")
	p.intact(t, session)
	if column != columnHold { // a call that was cut off has another result
		require.Equal(t, p.conversation(t, policySession(row.name, columnCalm)), p.conversation(t, session))
	}
}

// next starts the next run of a session, and checks what it finds there.
func (p *policies) next(t *testing.T, row policyRow, column string) {
	session := policySession(row.name, column)
	run, err := p.Start(t.Context(), row.name, "go", &client.StartOptions{Session: session, By: session})
	require.NoError(t, err)
	out := p.result(t, run)
	require.Equal(t, agent.StatusCompleted, out.Status, "%+v", out.Error)
	require.True(t, row.next(p.lastRequest(session)), "%q", resultsIn(p.lastRequest(session)))
}

// lastRequest is the last request of a session to the newest worker of this process.
func (w *policyWorld) lastRequest(session string) model.Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last[session]
}

// end is what a run of a principal has come to.
func (p *policies) end(t *testing.T, row policyRow, session, by string, out *agent.Outcome) policyEnd {
	t.Helper()
	e := policyEnd{Status: out.Status, Code: agent.CodeOf(out.Err()), Text: out.Text, Memory: fileOf(t, p.dir, by, row.name, "/memories/a.md")}
	n, twice := p.paidBy(session)
	require.False(t, twice, "a payment was made twice")
	e.Paid = n
	if v := out.Verify; v != nil {
		e.Checks, e.Vetoes = v.Invocations, v.Vetoes
	}
	if a := out.AdaptiveBudget; a != nil {
		e.Extensions, e.Limit = a.ExtensionsUsed, a.FinalLimit
	}
	if out.Handoff != nil {
		e.Blockers = strings.Join(out.Handoff.Blockers, ",")
	}
	book, err := p.Notebook(t.Context(), session)
	require.NoError(t, err)
	steps, err := p.Todo(t.Context(), session)
	require.NoError(t, err)
	e.Notebook, e.Todo, e.Skills, e.Merged = book.Version, len(steps), strings.Join(p.updates(t, session), ","), p.merged(session)
	for _, event := range p.view(t, session).Events() {
		switch event.Type {
		case agent.EventLessonLearned:
			e.Lessons++
		case agent.EventCompacted:
			e.Compacted += string(event.Compaction.Strategy)
		case agent.EventCheckDone:
			e.Hooks += decided(event.Check)
		}
	}
	if out.Report != nil {
		var verdicts []string
		for _, d := range out.Report.JudgeDecisions {
			verdicts = append(verdicts, string(d.Verdict))
		}
		e.Judged = strings.Join(verdicts, " ")
	}
	if slices.Contains(row.def.Tools, agent.ReportProgressTool) {
		run, err := p.Get(t.Context(), session)
		require.NoError(t, err)
		now, err := run.Status(t.Context())
		require.NoError(t, err)
		if now.Progress != nil {
			e.Progress = fmt.Sprintf("%s %d/%d", now.Progress.Line(), now.Progress.Done(), len(now.Progress.Entries))
		}
	}
	return e
}

// ownInResult is what only one session has in a result: the time since when a sub-agent is suspended, or the
// name of a sub-agent's worktree.
var ownInResult = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z|coder-[0-9a-f]{12}`)

// conversation is what the model of a session has read and said, the same for each session that did the same.
func (p *policies) conversation(t *testing.T, session string) []string {
	t.Helper()
	return linesOf(p.view(t, session).Messages(), session)
}

func linesOf(messages []agent.Message, session string) (lines []string) {
	for _, m := range messages {
		line := fmt.Sprintf("%s %s: %s", m.Role, m.Note, m.Text())
		for _, part := range m.Parts {
			if part.Call != nil {
				line += fmt.Sprintf(" call %s %s %s", part.Call.ID, part.Call.Tool, part.Call.Arguments)
			}
			if part.Result != nil {
				line += fmt.Sprintf(" result %s %s %s", part.Result.Call, part.Result.Status, part.Result.Text)
			}
		}
		line = strings.ReplaceAll(line, session, sessionInReplies)
		lines = append(lines, ownInResult.ReplaceAllString(line, "OWN"))
	}
	return lines
}

// forks forks the calm run before and after the policy acted, for the same principal.
func (p *policies) forks(t *testing.T, row policyRow) {
	session := policySession(row.name, columnCalm)
	head, said := p.head(t, session), p.conversation(t, session)
	for column, turn := range map[string]int{columnBefore: row.before, columnAfter: row.after} {
		into := policySession(row.name, column)
		anew, err := p.Fork(t.Context(), session, &client.ForkOptions{NewSession: true, Session: into, By: session, Checkpoint: p.checkpoint(t, session, turn), Text: "fork"})
		require.NoError(t, err)
		run, err := anew.Start(t.Context())
		require.NoError(t, err)
		out := p.result(t, run)
		require.Equal(t, agent.StatusCompleted, out.Status, "%s: %+v", column, out.Error)
		require.Equal(t, "forked", out.Text)
		end := p.end(t, row, into, session, out)
		assert.Zero(t, end.Vetoes, "vetoes are counted by run")
		assert.Equal(t, row.checks, end.Checks, column)
		if row.kept != nil {
			kept := row.in == inBoth || row.in == inAfter && column == columnAfter
			assert.Equal(t, kept, row.kept(p.lastRequest(into), end), column)
		}
	}
	require.Equal(t, head, p.head(t, session), "the original is unchanged")
	require.Equal(t, said, p.conversation(t, session))
	require.Equal(t, row.end, p.end(t, row, session, session, p.result(t, p.runs[session])))
}

// checkpoint is the last one after a turn.
func (p *policies) checkpoint(t *testing.T, session string, turn int) (id string) {
	t.Helper()
	points, err := p.Checkpoints(t.Context(), session, nil)
	require.NoError(t, err)
	for _, c := range points.Items {
		if c.Turn == turn {
			id = c.ID
		}
	}
	require.NotEmpty(t, id, "no checkpoint of turn %d", turn)
	return id
}

// replays replays the history of each execution.
func (p *policies) replays(t *testing.T) {
	n := 0
	for v, err := range worker.Preflight(context.Background(), p.temporal, &worker.Options{TaskQueue: p.queue}, &worker.PreflightOptions{Closed: 1000}) {
		require.NoError(t, err)
		require.NoError(t, v.Err(), v.Session)
		if v.Run != v.Execution {
			n++
		}
	}
	require.GreaterOrEqual(t, n, len(policyRows())-1, "each row but one has continued as new")
}
