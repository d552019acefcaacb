package e2e

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	temporal "go.temporal.io/sdk/client"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/devserver"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// The story that the killed workers play: a tool with a side effect in every
// turn, which writes its idempotency key to a journal outside.
const killTurns = 12

func journal(dir string) tool.Tool {
	return tool.New("pay", "writes to the journal", func(ctx context.Context, c *tool.Call, _ map[string]any) (string, error) {
		pause(ctx)
		defer pause(ctx)
		f, err := os.OpenFile(filepath.Join(dir, "journal"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return "", err
		}
		defer f.Close()
		_, err = fmt.Fprintln(f, c.Key)
		return "paid", err
	}, nil)
}

// pause makes it likely that a worker is killed here, before or after the effect.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(15 * time.Millisecond):
	}
}

func killScript() *testsuite.Script {
	var replies []testsuite.Reply
	for i := range killTurns {
		replies = append(replies, testsuite.Reply{Text: fmt.Sprintf("turn %d", i), Delay: 20 * time.Millisecond, Calls: call("pay", map[string]any{"n": i})})
	}
	return testsuite.NewScript(append(replies, testsuite.Reply{Text: "all paid"})...)
}

// workerEnv is ADDR|QUEUE|DIR of a worker that works until it is killed.
const workerEnv = "FERMATA_E2E_WORKER"

// processes are what a process of this test binary does where the environment says so.
var processes = map[string]func(spec string) error{
	workerEnv: func(spec string) error {
		f := strings.Split(spec, "|")
		return workUntilKilled(f[0], f[1], f[2])
	},
	reviewEnv:   reviewUntilKilled,
	recordedEnv: workRecorded,
	memoryEnv:   keepUntilKilled,
	hookEnv:     gateUntilKilled,
	policiesEnv: workPolicies,
	askEnv:      askUntilKilled,
	firstEnv:    payUntilKilled,
	watchEnv:    watchUntilKilled,
}

func TestMain(m *testing.M) {
	for env, run := range processes {
		spec := os.Getenv(env)
		if spec == "" {
			continue
		}
		if err := run(spec); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	waitTogether()
	devserver.Main(m)
	_ = os.RemoveAll(built.dir)
}

// waitTogether lets more tests go on at once than there are processors, unless somebody
// said how many: they wait more than they work.
func waitTogether() {
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if !said {
		_ = flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0)))
	}
}

func workUntilKilled(addr, queue, dir string) error {
	c, err := remote(addr).Dial(context.Background(), connection(slog.DiscardHandler))
	if err != nil {
		return err
	}
	st, _, err := openStore(dir) // until it is killed
	if err != nil {
		return err
	}
	return workFor(c, &worker.Options{
		TaskQueue: queue, Store: st, Logger: zap.NewNop(), Models: map[string]model.Model{"script": killScript(), "held": heldScript(), "deadly": deadly{dir}},
		Agents: append(heldAgents(), agent.Definition{Name: "tester", Model: "script", Tools: []string{"pay"}}, agent.Definition{Name: "victim", Model: "deadly"}), Tools: []tool.Tool{journal(dir), linger(), tenSeconds()},
		Flows: []flow.Flow{killFlow()},
	})
}

// workFor is a worker that works until its process is killed. It says when it begins.
func workFor(c temporal.Client, o *worker.Options) error {
	w, err := worker.New(c, o)
	if err != nil {
		return err
	}
	if err := w.Start(context.Background()); err != nil {
		return err
	}
	fmt.Println("ready")
	select {}
}

// startWorker starts a worker process and waits until it works.
func startWorker(t *testing.T, addr, queue, dir string) *exec.Cmd {
	t.Helper()
	cmd, _ := startMortal(t, addr, queue, dir)
	return cmd
}

// startMortal is startWorker. The channel is closed when the process has ended.
func startMortal(t *testing.T, addr, queue, dir string) (*exec.Cmd, <-chan struct{}) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), workerEnv+"="+strings.Join([]string{addr, queue, dir}, "|"))
	return cmd, ready(t, cmd)
}

// ready starts a process and waits until it says that it is ready; it ends with the test. The
// channel is closed when it has ended.
func ready(t *testing.T, cmd *exec.Cmd) <-chan struct{} {
	t.Helper()
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { kill(cmd) })
	says := bufio.NewReader(out)
	line, err := says.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, says) // it says nothing more
		close(ended)
	}()
	return ended
}

func kill(cmd *exec.Cmd) {
	_ = cmd.Process.Kill() // it may be gone already
	_ = cmd.Wait()
}

// Workers are killed with -9 at any moment of a run, again and again: the run
// completes, each payment was made once or is marked as unknown, and no message is
// doubled or lost (HX-30, HX-37, HX-38, OA-95, OA-98, OA-99, OA-101).
func TestWorkersKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	server := shared(t)
	c := dial(t, server)
	var wg sync.WaitGroup
	var checks []func()
	for seed := range uint64(4) {
		dir, queue := t.TempDir(), fmt.Sprintf("kill-%d", seed)
		st := stored(t, dir)
		cl := client.New(c, &client.Options{TaskQueue: queue, Store: st})
		run, err := cl.Start(t.Context(), "tester", "pay all", nil)
		require.NoError(t, err)
		wg.Go(func() { killWhileItRuns(t, server.Addr(), queue, dir, run, seed) })
		checks = append(checks, func() { checkKilled(t, cl, run, dir, seed) })
	}
	wg.Wait()
	for _, check := range checks {
		check()
	}
}

// killWhileItRuns kills the run's worker at four random moments and lets the
// fifth go on.
func killWhileItRuns(t *testing.T, addr, queue, dir string, run *client.Run, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	for range 4 {
		w := startWorker(t, addr, queue, dir)
		life, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(400))*time.Millisecond)
		_, err := run.Result(life)
		cancel()
		kill(w)
		if err == nil {
			return
		}
	}
	startWorker(t, addr, queue, dir)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if _, err := run.Result(ctx); err != nil {
		t.Error(err)
	}
}

func checkKilled(t *testing.T, cl *client.Client, run *client.Run, dir string, seed uint64) {
	out, err := run.Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, agent.StatusCompleted, out.Status, "seed %d: %+v", seed, out.Error)
	require.Equal(t, "all paid", out.Text)
	require.Equal(t, []string{run.Session, run.ID}, []string{out.Session, out.Run})
	messages, err := cl.Transcript(t.Context(), run.Session)
	require.NoError(t, err)
	require.Len(t, messages, 1+2*killTurns+1)

	paid := paymentsByKey(t, dir)
	unknown := 0
	for turn := range killTurns {
		said, result := messages[1+2*turn], messages[2+2*turn].Parts[0].Result
		require.Equal(t, fmt.Sprintf("turn %d", turn), said.Text(), "seed %d", seed)
		key := agent.IdempotencyKey(run.ID, result.Call)
		if result.Status == agent.CallUnknown {
			unknown++
			require.LessOrEqual(t, paid[key], 1, "seed %d: %s", seed, key)
			continue
		}
		require.Equal(t, agent.CallOK, result.Status, "seed %d: %s: %s", seed, key, result.Text)
		require.Equal(t, 1, paid[key], "seed %d: %s", seed, key)
	}
	t.Logf("seed %d: %d of %d payments are marked as unknown", seed, unknown, killTurns)
}
