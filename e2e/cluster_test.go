package e2e

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/testenv"
)

// built is the folder of the command, which all tests share.
var built struct {
	sync.Mutex
	dir string
}

// fermata builds the command, once, and returns the folder that it is in.
func fermata(t *testing.T) string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if built.dir == "" {
		dir, err := os.MkdirTemp("", "fermata")
		require.NoError(t, err)
		built.dir = dir // removed at the end, see TestMain
		said, err := exec.Command("go", "build", "-o", filepath.Join(dir, "fermata"), "github.com/fermata-agents/fermata/cmd/fermata").CombinedOutput()
		require.NoError(t, err, "%s", said)
	}
	return built.dir
}

// cliFixture is a folder in which people and workers use the command.
type cliFixture struct {
	t       *testing.T
	program string
	home    string
	env     []string
}

func openCLIFixture(t *testing.T) *cliFixture {
	t.Helper()
	s := &cliFixture{t: t, program: filepath.Join(fermata(t), "fermata"), home: t.TempDir()}
	s.env = append(os.Environ(), "TEMPORAL_ADDRESS="+shared(t).Addr(), "XDG_DATA_HOME="+filepath.Join(s.home, "data"),
		"FERMATA_STORE="+cmp.Or(os.Getenv(storeVariable), filepath.Join(s.home, "store")))
	require.NoError(t, os.Mkdir(filepath.Join(s.home, "trip"), 0o700))
	s.write("fermata.yaml", `
as_root: true
workspace: trip
agents:
  lead: {model: "script:lead.yaml", tools: [shell_run, ask_user], agents: [{agent: scout}]}
  scout: {model: "script:scout.yaml", tools: [shell_run]}
`)
	s.write("lead.yaml", `
replies:
  - calls: [{tool: subagent__scout, arguments: {task: "look north"}}, {tool: subagent__scout, arguments: {task: "look south"}}]
  - calls: [{tool: ask_user, arguments: {question: "Which way?"}}]
  - calls: [{tool: shell_run, arguments: {command: "echo went >> journal"}}]
  - {text: "There we are."}
`)
	s.write("scout.yaml", `
replies:
  - calls: [{tool: shell_run, arguments: {command: "echo looked >> journal"}}]
  - {text: "Nothing there."}
`)
	return s
}

func (s *cliFixture) write(name, text string) {
	s.t.Helper()
	require.NoError(s.t, os.WriteFile(filepath.Join(s.home, name), []byte(text), 0o600))
}

func (s *cliFixture) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(s.t.Context(), s.program, append(args, "--task-queue", filepath.Base(s.home)+s.t.Name())...)
	cmd.Dir, cmd.Env = s.home, s.env
	return cmd
}

// run runs a command to its end, which has to be the one that is wanted.
func (s *cliFixture) run(exit int, args ...string) (out, said string) {
	s.t.Helper()
	cmd := s.command(args...)
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		require.NoError(s.t, err)
	}
	require.Equal(s.t, exit, cmd.ProcessState.ExitCode(), "fermata %s: %s%s", args, o.String(), e.String())
	return o.String(), e.String()
}

// startWorker starts a worker process, which works until it is killed.
func (s *cliFixture) startWorker() *exec.Cmd {
	s.t.Helper()
	cmd := s.command("worker")
	out, err := cmd.StdoutPipe()
	require.NoError(s.t, err)
	var said bytes.Buffer
	cmd.Stderr = &said
	require.NoError(s.t, cmd.Start())
	s.t.Cleanup(func() { kill(cmd) })
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "ready") {
			return cmd
		}
	}
	_ = cmd.Wait()
	require.Fail(s.t, "a worker ends", said.String())
	return nil
}

// rests waits until a session rests or ends.
func (s *cliFixture) rests(exit int, session string) *agent.Outcome {
	s.t.Helper()
	out, _ := s.run(exit, "wait", session, "--json", "--timeout", patience.String())
	var o agent.Outcome
	require.NoError(s.t, json.Unmarshal([]byte(out), &o), out)
	return &o
}

// Three workers of one build share the runs of trees. Two are killed while the runs
// wait, and the third while they go on: each run is answered, or stopped with a handoff,
// and nothing is done twice.
func TestThreeWorkerProcesses(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	s := openCLIFixture(t)
	workers := []*exec.Cmd{s.startWorker(), s.startWorker(), s.startWorker()}
	const runs, stopped = 6, 2
	var sessions []string
	for range runs {
		session := "shop-" + uuid.NewString()[:8]
		s.run(0, "run", "lead", "go", "--detach", "--session", session)
		sessions = append(sessions, session)
	}
	asked := map[string]string{}
	for _, session := range sessions {
		o := s.rests(3, session)
		require.Equal(t, agent.SuspensionInputRequired, o.Suspension.Kind)
		asked[session] = o.Suspension.Requests[0].ID
	}
	kill(workers[0])
	kill(workers[1])
	for i, session := range sessions {
		if i < stopped {
			s.run(0, "stop", session, "--reason", "enough")
			continue
		}
		s.run(0, "answer", session, "north", "--request", asked[session])
		if i == runs/2 {
			kill(workers[2])
			s.startWorker()
		}
	}
	unknown := 0
	for i, session := range sessions {
		if i < stopped {
			require.Equal(t, agent.StatusStopped, s.rests(4, session).Status)
			out, _ := s.run(0, "handoff", session)
			require.Equal(t, 2, strings.Count(out, `"agent":"scout"`)+strings.Count(out, `"agent": "scout"`), out)
			continue
		}
		o := s.rests(0, session)
		require.Equal(t, "There we are.", o.Text)
		out, _ := s.run(0, "transcript", session)
		require.Equal(t, 1, strings.Count(out, "Which way?"), out)
		unknown += strings.Count(out, "unknown")
	}
	journal, err := os.ReadFile(filepath.Join(s.home, "trip", "journal"))
	require.NoError(t, err)
	require.Equal(t, 2*runs, strings.Count(string(journal), "looked\n"))
	went := strings.Count(string(journal), "went\n")
	require.LessOrEqual(t, went, runs-stopped)
	require.GreaterOrEqual(t, went, runs-stopped-unknown)
}

// A worker process that lacks the key says so and ends, and so does whoever reads.
func TestAWorkerProcessWithoutTheKey(t *testing.T) {
	t.Parallel()
	s := openCLIFixture(t)
	s.env = append(s.env, keysVariable+"="+cmp.Or(os.Getenv(keysVariable), newKey(t, "k1")))
	s.startWorker()
	session := "locked-" + uuid.NewString()[:8]
	s.run(0, "run", "lead", "go", "--detach", "--session", session)
	s.rests(3, session)
	without := *s
	without.env = append(s.env[:len(s.env):len(s.env)], keysVariable+"=")
	for _, args := range [][]string{{"worker"}, {"show", session}, {"transcript", session}, {"answer", session, "north", "--request", "q-1"}} {
		_, said := without.run(5, args...)
		require.Contains(t, said, "[not_set_up]", args)
		require.Contains(t, said, "this process has no keys: give it that key (FERMATA_ENCRYPTION_KEYS)", args)
	}
	require.Equal(t, agent.StatusSuspended, s.rests(3, session).Status, fmt.Sprint("it waits as before: ", session))
}
