package main

import (
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
)

// project is an agents file with agents of several kinds, and their scripts.
func project(b *bench) {
	b.write("fermata.yaml", `
agents:
  reader: {model: "script:reader.yaml", tools: [fs_read, fs_list]}
  sorter:
    model: script:sorter.yaml
    output: {type: object, required: [kind], properties: {kind: {enum: [bug, wish]}}}
  short: {model: "script:reader.yaml", tools: [fs_read, fs_list], limits: {turns: 1}}
  slow: {model: "script:slow.yaml"}
  tracker: {model: "script:tracker.yaml", tools: ["mcp:tickets"]}
  claude: {model: anthropic/claude-sonnet-5}
mcp:
  tickets: {command: ["`+os.Args[0]+`"], env: {`+asMCP+`: "`+b.desk()+`"}, write: ["`+b.desk()+`"]}
as_root: true
`)
	b.write("notes.txt", "Call the till.\n")
	b.write("reader.yaml", `
price: {input: 1, output: 2}
replies:
  - {text: "Let me look.", calls: [{tool: fs_read, arguments: {path: notes.txt}}, {tool: fs_read, arguments: {path: gone.txt}}, {tool: fly, arguments: {}}]}
  - {text: "The notes say: call the till."}
`)
	b.write("sorter.yaml", "replies:\n  - {text: \"hm\"}\n  - {text: '{\"kind\": \"bug\"}'}\n")
	b.write("slow.yaml", "replies:\n  - {text: \"At last.\", delay: 6s}\n")
	b.write("tracker.yaml", "replies:\n  - {calls: [{tool: tickets__title, arguments: {number: 7}}]}\n  - {text: \"Ticket 7 it is.\"}\n")
	b.write("broken.yaml", "agents:\n  a:\n    model: gpt\n    tools: [fly]\n  b: {model: [}\n")
	b.write("unknown.yaml", "agents:\n  a:\n    model: gpt\n    tools: [fly]\n")
}

// lastLine is the last line of an output, as JSON.
func lastLine[T any](t *testing.T, out string) (v T) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &v), out)
	return v
}

func TestDemo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	begun := time.Now()
	r := b.run("demo")
	t.Logf("the demo took %s:\n%s", time.Since(begun), r.out)
	require.Zero(t, r.exit, r.err)
	for _, want := range []string{
		"→ fs_read path=\"NOTES.md\"\n", "fs_read rejected", "NOTES.md does not exist",
		"FAIL: the total is 1170, it should be 1070", "total.sh: replaced", "PASS: the total is 1070",
		"completed · 6 turns, 6 calls (1 not ok) · ", "  fermata transcript demo-",
	} {
		require.Contains(t, r.out, want)
	}
	require.NotContains(t, r.out, "\x1b", "colours are for terminals")

	_, session, _ := strings.Cut(r.out, "fermata transcript ")
	session, _, _ = strings.Cut(session, "\n")
	said := b.run("transcript", session)
	require.Zero(t, said.exit, said.err)
	require.Contains(t, said.out, "[result t5.1, ok]\n│ [exit status 0 after")
	require.Contains(t, said.err, "no Temporal server runs: this is what the store has")
}

func TestRunOnTheEmbeddedServer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project(b)
	r := b.run("run", "reader", "What do the notes say?", "--session", "s-1")
	require.Zero(t, r.exit, r.err)
	for _, want := range []string{
		"session s-1 · run ", "reader · script:reader.yaml\n", "│ Let me look.\n→ fs_read path=\"notes.txt\"\n",
		"  fs_read ok", "  fs_read rejected", "→ fly", "  fly rejected Tool not found: fly.", "The notes say: call the till.\ncompleted · 2 turns, 3 calls (2 not ok) · ",
	} {
		require.Contains(t, r.out, want)
	}

	r = b.run("run", "sorter", "It crashes", "--json")
	require.Zero(t, r.exit, r.err)
	o := lastLine[agent.Outcome](t, r.out)
	require.Equal(t, agent.StatusCompleted, o.Status)
	require.JSONEq(t, `{"kind":"bug"}`, string(o.Output))
	for line := range strings.Lines(r.out) {
		e := lastLine[map[string]any](t, line)
		require.Equal(t, []any{o.Session, o.Run}, []any{e["session"], e["run"]})
	}

	r = b.run("run", "short", "What do the notes say?", "--json")
	require.Equal(t, 1, r.exit)
	require.Contains(t, r.err, "fermata: error [limit_turns] ")
	o = lastLine[agent.Outcome](t, r.out)
	require.Equal(t, []any{agent.StatusFailed, string(agent.CodeLimitTurns)}, []any{o.Status, o.Reason})

	r = b.run("run", "claude", "Hi", "--model", "script:slow.yaml")
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.out, "claude · script:slow.yaml\n│ At last.\ncompleted")

	r = b.run("run", "tracker", "What is ticket 7?")
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.out, "→ tickets__title number=7\n")
	require.Contains(t, r.out, "The till is wrong")

	// The session goes on with what was said before, and shows what is new only.
	r = b.run("run", "slow", "And now?", "--session", "s-1")
	require.Equal(t, 1, r.exit, "its script has one reply, and the session has had more: %s", r.err)
	require.NotContains(t, r.out, "Let me look.")
}

// What can't work is refused before there is a server, let alone a run (HA-150).
func TestRunRefusesBeforeItStarts(t *testing.T) {
	b := setup(t)
	project(b)
	tests := []struct {
		args []string
		exit int
		want []string
	}{
		{[]string{"run", "nobody", "x"}, 2, []string{`[unknown_agent] fermata.yaml has no agent "nobody"; it has reader, sorter, short, slow, tracker, claude`}},
		{[]string{"run", "claude", "x"}, 1, []string{"[provider_auth] fermata.yaml:10: agent claude: its model anthropic/claude-sonnet-5 needs a key: set ANTHROPIC_API_KEY"}},
		{[]string{"run", "reader", "x", "--model", "gpt"}, 2, []string{`[unknown_model] model "gpt" is not known`}},
		{[]string{"run", "a", "x", "--agents", "broken.yaml"}, 2, []string{"[invalid_input] broken.yaml:5: not YAML: "}},
		{[]string{"run", "a", "x", "--agents", "unknown.yaml"}, 2, []string{`[unknown_model] unknown.yaml:3: agents.a.model: model "gpt" is not known`, `[unknown_tool] unknown.yaml:4: agents.a.tools[0]: tool "fly" is not known`}},
	}
	for _, tt := range tests {
		r := b.run(tt.args...)
		require.Equal(t, tt.exit, r.exit, r.err)
		require.Empty(t, r.out)
		require.NotContains(t, r.err, "temporal ", "no server was started")
		for _, want := range tt.want {
			require.Contains(t, r.err, "fermata: error "+want)
		}
	}
	r := b.run("run", "a", "x", "--agents", "unknown.yaml", "--json")
	e := lastLine[errorLine](t, r.out)
	require.Equal(t, agent.CodeUnknownModel, e.Code)
	require.Contains(t, e.Message, "\nunknown.yaml:4: ")
}

func TestDevAndTheOthers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project(b)
	dev := b.start("dev")
	dev.until("ready")

	r := b.run("run", "slow", "Take your time", "--detach", "--session", "s-1")
	require.Zero(t, r.exit, r.err)
	require.Equal(t, "s-1\n", r.out)
	require.Contains(t, r.err, "temporal "+b.addr+", namespace default\n")

	r = b.run("wait", "s-1", "--timeout", "1ms")
	require.Equal(t, 7, r.exit, r.err)
	r = b.run("show", "s-1", "--json")
	require.Zero(t, r.exit, r.err)
	require.Equal(t, sourceWorker, lastLine[shown](t, r.out).Source)
	r = b.run("wait", "s-1", "--timeout", "1m", "--json")
	require.Zero(t, r.exit, r.err)
	require.Equal(t, "At last.", lastLine[agent.Outcome](t, r.out).Text)
	r = b.run("show", "s-1")
	require.Zero(t, r.exit, r.err)
	require.Regexp(t, `(?s)status +completed \(done\) since .*\n\n│ At last\.\n$`, r.out)
	r = b.run("transcript", "s-1")
	require.Zero(t, r.exit, r.err)
	require.Equal(t, "== user\n│ Take your time\n\n== assistant (script:slow.yaml)\n│ At last.\n", r.out)
	r = b.run("transcript", "s-1", "--json")
	require.Equal(t, agent.RoleAssistant, lastLine[agent.Message](t, r.out).Role)
	r = b.run("ls", "--agent", "slow", "--json")
	require.Zero(t, r.exit, r.err)
	require.Equal(t, "s-1", lastLine[map[string]any](t, r.out)["session"])
	r = b.run("ls", "--status", "failed")
	require.Equal(t, []any{0, ""}, []any{r.exit, r.out})
	require.Contains(t, r.err, "temporal "+b.addr+", namespace default\nno runs\n")

	b.otherAgents(t)
	for _, command := range []string{"show", "wait", "transcript"} {
		r = b.run(command, "nowhere")
		require.Equal(t, 6, r.exit, r.err)
		require.Contains(t, r.err, "fermata: error [not_found] ")
	}
	r = b.run("ls", "--namespace", "typo")
	require.Equal(t, 5, r.exit, r.err)
	require.Contains(t, r.err, `[not_set_up] listing runs: the server has no namespace "typo"`)
	r = b.run("setup", "--check")
	require.Zero(t, r.exit, r.err)
	r = b.run("doctor")
	require.Equal(t, 1, r.exit, "a key is missing")
	require.Regexp(t, `(?s)ok   server +`+b.addr+`.*ok   attributes.*ok   cancel.*ok   worker.*FAIL key +ANTHROPIC_API_KEY is not set`, r.out)

	end := dev.end(syscall.SIGTERM)
	require.Zero(t, end.exit, end.err)
	require.True(t, connect.Free(b.addr), "the port is free")
}

// otherAgents tries what a worker that is there already does to a run.
func (b *bench) otherAgents(t *testing.T) {
	t.Helper()
	r := b.run("run", "reader", "What do the notes say?")
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.err, "\nworker ")
	r = b.run("run", "tracker", "What is ticket 7?") // its MCP server lives as long as the worker
	require.Zero(t, r.exit, r.err)
	// An agent that the file lacks is refused, and gets no session.
	r = b.run("run", "slow", "x", "--session", "s-2")
	require.Zero(t, r.exit, r.err)
	for _, args := range [][]string{{"run", "slwo", "x"}, {"run", "slwo", "x", "--detach"}, {"chat", "slwo"}, {"fork", "--agent", "slwo", "--message", "x"}} {
		r = b.run(append(args, "--session", "s-2")...)
		if args[0] == "fork" {
			r = b.run(append(args, "s-2")...)
		}
		require.Equal(t, 2, r.exit, "%s: %s", args, r.err)
		require.Contains(t, r.err, `[unknown_agent] fermata.yaml has no agent "slwo"; it has reader, sorter, short, slow, tracker, claude; did you mean "slow"?`)
	}
	r = b.run("send", "s-2", "x", "--agent", "slwo")
	require.Equal(t, 2, r.exit, r.err)
	require.Equal(t, 1, strings.Count(b.run("runs", "s-2").out, "slow"), "nothing began")
	r = b.elsewhere().run("run", "nobody", "x", "--json") // without the file the worker refuses
	require.Equal(t, 2, r.exit, r.err)
	require.Equal(t, string(agent.CodeUnknownAgent), lastLine[agent.Outcome](t, r.out).Reason)
	r = b.run("run", "nobody", "x", "--detach", "--task-queue", "other")
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.err, `fermata: warning: fermata.yaml has no agent "nobody"`)
	r = b.run("run", "reader", "x", "--model", "script:slow.yaml")
	require.Equal(t, 2, r.exit, r.err)
	r = b.run("dev")
	require.Equal(t, 6, r.exit, "there can be one of it")
	// Agents of another file are not mixed up with these.
	b.write("other.yaml", "agents: {reader: {model: \"script:slow.yaml\"}}\n")
	r = b.run("run", "reader", "x", "--agents", "other.yaml")
	require.Equal(t, 6, r.exit, r.err)
	require.Contains(t, r.err, "[busy] the worker at the task queue fermata has the agents of ")
	r = b.run("run", "reader", "x", "--agents", "other.yaml", "--task-queue", "other")
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.out, "At last.")
}

func TestNoWorker(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dev := b.start("dev")
	dev.until("ready")
	begun := time.Now()
	r := b.run("run", "reader", "x")
	require.Equal(t, 5, r.exit, r.err)
	require.Contains(t, r.err, "fermata: error [no_worker] no worker polls the task queue fermata at "+b.addr)
	require.Less(t, time.Since(begun), 10*time.Second)
	r = b.run("run", "slow", "x", "--detach", "--json")
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.err, "no worker polls the task queue fermata yet")
	started := lastLine[startedLine](t, r.out)

	r = b.run("show", started.Session, "--json")
	require.Zero(t, r.exit, r.err)
	v := lastLine[shown](t, r.out)
	require.Equal(t, []any{sourceMemo, agent.StatusPending, "slow"}, []any{v.Source, v.Status, v.Agent})
	require.Contains(t, r.err, "no worker answers")

	r = b.run("wait", started.Session, "--timeout", "4s")
	require.Equal(t, 7, r.exit, r.err)
	require.Contains(t, r.err, "no worker polls the task queue fermata: this waits for fermata worker")

	// A worker that stops is not taken for one that is there.
	project(b)
	w := b.start("worker", "--agents", "fermata.yaml")
	w.until("ready")
	r = b.run("wait", started.Session)
	require.Zero(t, r.exit, r.err)
	stopped := w.end(syscall.SIGINT)
	require.Zero(t, stopped.exit, stopped.err)
	r = b.run("run", "sorter", "x")
	require.Zero(t, r.exit, r.err)
	require.NotContains(t, r.err, "\nworker ")

	// One that was killed looks as if it were: the run finds out.
	w = b.start("worker", "--agents", "fermata.yaml")
	w.until("ready")
	r = b.run("run", "sorter", "x")
	require.Contains(t, r.err, "\nworker ")
	w.end(syscall.SIGKILL)
	r = b.run("run", "sorter", "x")
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.out, "this command starts one")
	require.Zero(t, dev.end(syscall.SIGINT).exit)
}

// A run that rests on the server of its own command needs another one to go on.
func TestARunOfTheCommandsOwnServerSaysWhatToStart(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.write("fermata.yaml", "agents: {asker: {model: \"script:asker.yaml\", tools: [ask_user]}}\nas_root: true\n")
	b.write("asker.yaml", "replies: [{calls: [{tool: ask_user, arguments: {question: \"Which till?\"}}]}]\n")
	r := b.run("run", "asker", "Call the till.", "--session", "s-1")
	require.Equal(t, 3, r.exit, r.out+r.err)
	require.Regexp(t, `(?m)^  fermata dev( --data \S+)?   # first: this command's server ends with it\n\nq-1 · question`, r.out)
}

// Without a worker at the run's task queue, what the store has is shown, as without a server.
func TestTheStoreIsShownWithoutAWorker(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.write("fermata.yaml", "agents: {asker: {model: \"script:asker.yaml\", tools: [ask_user]}}\nas_root: true\n")
	b.write("asker.yaml", "replies: [{text: Let me ask., calls: [{tool: ask_user, arguments: {question: \"Which till?\"}}]}]\n")
	dev := b.start("dev")
	dev.until("ready")
	w := b.start("worker", "--agents", "fermata.yaml", "--task-queue", "tills")
	w.until("ready")
	r := b.run("run", "asker", "Call the till.", "--session", "s-1", "--task-queue", "tills")
	require.Equal(t, 3, r.exit, r.out+r.err)
	r = b.run("transcript", "s-1")
	require.Zero(t, r.exit, r.err)
	require.NotContains(t, r.err, "no worker answers")
	whole := r.out
	require.Contains(t, whole, "Let me ask.")
	points := b.run("checkpoints", "s-1").out

	for _, end := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} { // a killed worker seems to poll for a while
		w.end(end)
		for command, shows := range map[string]string{"transcript": whole, "runs": "asker", "checkpoints": points, "files": "", "artifacts": "", "notebook": ""} {
			r := b.run(command, "s-1")
			require.Zero(t, r.exit, r.out+r.err)
			require.Contains(t, r.out, shows)
			require.Regexp(t, "no worker answers at the task queue tills: this is what the store had at .* of a run that has not ended", r.err)
		}
		if end == syscall.SIGINT {
			w = b.start("worker", "--agents", "fermata.yaml", "--task-queue", "tills")
			w.until("ready")
		}
	}

	// Of a run that no worker has taken, the store has nothing.
	r = b.run("run", "asker", "Call the till.", "--session", "s-2", "--task-queue", "later", "--detach")
	require.Zero(t, r.exit, r.err)
	for _, command := range []string{"transcript", "runs", "checkpoints", "files", "artifacts", "notebook", "show --todo", "show --draw"} {
		r := b.run(append(strings.Fields(command), "s-2")...)
		require.Equal(t, 5, r.exit, r.out+r.err)
		require.Contains(t, r.err, "the store has nothing of session s-2, and no worker polls its task queue later: start one with fermata worker", command)
	}
	require.Zero(t, dev.end(syscall.SIGINT).exit)
}

// A run whose processes were killed goes on where another one takes it up
// (HA-138).
func TestRunSurvivesItsProcesses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project(b)
	b.write("slow.yaml", "replies:\n  - {text: \"At last.\", delay: 20s}\n")
	run := b.start("run", "slow", "Take your time", "--session", "s-1")
	run.until("slow · ")
	r := run.end(os.Interrupt.(syscall.Signal))
	require.Equal(t, 130, r.exit, r.err)
	require.Contains(t, r.err, "interrupted; the run is not lost: fermata dev continues it")

	// Nobody else's agents go on with it.
	b.write("other.yaml", "agents: {slow: {model: \"script:reader.yaml\"}}\n")
	r = b.run("run", "slow", "x", "--agents", "other.yaml")
	require.Equal(t, 6, r.exit, r.err)
	require.Contains(t, r.err, "[busy] the task queue fermata has live runs of the agents in ")
	require.Contains(t, r.err, "/fermata.yaml (s-1)")
	require.Contains(t, r.err, "fermata cancel SESSION in another terminal. Or keep this project apart with --data DIR")

	dev := b.start("dev")
	dev.until("ready")
	run = b.elsewhere().start("run", "slow", "Take your time", "--session", "s-2")
	run.until("slow · ")
	require.Equal(t, -1, dev.end(syscall.SIGKILL).exit)
	r = run.wait()
	require.Equal(t, 5, r.exit, r.err)
	require.Contains(t, r.err, "[unreachable] Temporal at "+b.addr+" does not answer any more: ")
	require.Contains(t, r.err, "the run is not lost: when the server is back, see fermata wait s-2\n")

	b.write("slow.yaml", "replies:\n  - {text: \"At last.\"}\n")
	dev = b.start("dev")
	dev.until("ready")
	for _, session := range []string{"s-1", "s-2"} {
		r = b.run("wait", session, "--timeout", "1m")
		require.Zero(t, r.exit, r.err)
		require.Contains(t, r.out, "At last.\ncompleted · 1 turn · ")
	}
	require.Zero(t, dev.end(syscall.SIGTERM).exit)
}

// Two runs at once share the server of the one that came first. When that has
// ended, the other goes on by itself.
func TestRunOutlivesABorrowedServer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project(b)
	b.write("fermata.yaml", "agents: {slow: {model: \"script:slow.yaml\"}, slower: {model: \"script:slower.yaml\"}}\n")
	b.write("slower.yaml", "replies:\n  - {text: \"Finally.\", delay: 12s}\n")
	first := b.start("run", "slow", "One")
	first.until("slow · ")
	second := b.start("run", "slower", "Two")
	second.until("slower · ")
	r := first.wait()
	require.Zero(t, r.exit, r.err)
	r = second.wait()
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.err, "\nworker ")
	require.Contains(t, r.out, "its run continues here\n")
	require.Equal(t, 1, strings.Count(r.out, "slower · "), "nothing is told twice")
	require.Contains(t, r.out, "Finally.\ncompleted · 1 turn · ")
}
