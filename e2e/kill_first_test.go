package e2e

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// firstEnv makes this test binary a worker that kills itself in the first tool of a run.
const firstEnv = "FERMATA_E2E_FIRST" // ADDR|QUEUE|DIR

func firstTool(s store.Store, queue string, inTool func()) *worker.Options {
	pay := tool.New("pay", "pays", func(context.Context, *tool.Call, struct{}) (string, error) {
		inTool()
		return "paid", nil
	}, &tool.Options{Attempts: 2})
	script := testsuite.NewScript(testsuite.Reply{Text: "I pay.", Calls: call("pay", nil)}, testsuite.Reply{Text: "done"})
	return &worker.Options{
		TaskQueue: queue, Store: s, Logger: zap.NewNop(), Models: map[string]model.Model{"script": script}, Temporal: stopsSoon, Tools: []tool.Tool{pay},
		Agents: []agent.Definition{{Name: "payer", Model: "script", Tools: []string{"pay"}}},
	}
}

func payUntilKilled(spec string) error {
	f := strings.Split(spec, "|")
	c, err := remote(f[0]).Dial(context.Background(), connection(slog.DiscardHandler))
	if err != nil {
		return err
	}
	st, _, err := openStore(f[2]) // until it is killed
	if err != nil {
		return err
	}
	return workFor(c, firstTool(st, f[1], die))
}

// A worker is killed with -9 in the first tool of a run's first turn, before the run has a
// checkpoint and before anything is stored. Nothing is cut back: the transcript has each message
// once, the user's first (HX-39). The run is the same one still; a fork is another run of its session
// (OA-39).
func TestAWorkerKilledInTheFirstTool(t *testing.T) {
	t.Parallel()
	s := on(t, shared(t))
	dir := t.TempDir()
	st := stored(t, dir)
	cl := client.New(s.temporal, &client.Options{TaskQueue: s.queue, Store: st})
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), firstEnv+"="+strings.Join([]string{s.addr, s.queue, dir}, "|"))
	killed := ready(t, cmd)
	run, err := cl.Start(t.Context(), "payer", "pay bill 118", &client.StartOptions{Session: s.queue})
	require.NoError(t, err)
	select {
	case <-killed:
	case <-t.Context().Done():
	}
	_, err = store.NewLog(st).Head(t.Context(), run.Session)
	require.ErrorIs(t, err, agent.CodeNotFound, "it has no checkpoint")

	var again atomic.Int64
	s.open(t, firstTool(st, s.queue, func() { again.Add(1) }))
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience) // a lost call is noticed after 30 s
	defer cancel()
	o, err := run.Result(ctx)
	require.NoError(t, err)
	require.Equal(t, agent.StatusCompleted, o.Status, "%v", o.Err())
	require.EqualValues(t, 1, again.Load())
	messages, err := cl.Transcript(t.Context(), run.Session)
	require.NoError(t, err)
	require.Len(t, messages, 4)
	require.Equal(t, []string{"pay bill 118", "I pay.", "done"}, []string{messages[0].Text(), messages[1].Text(), messages[3].Text()})
	require.Equal(t, "t1.1", messages[1].Parts[1].Call.ID)
	require.Equal(t, []string{"t1.1", "paid"}, []string{messages[2].Parts[0].Result.Call, messages[2].Parts[0].Result.Text})
	require.Equal(t, []string{run.Session, run.ID}, []string{o.Session, o.Run})
	require.Equal(t, []string{run.ID}, runsOf(t, cl, run.Session))

	anew, err := cl.Fork(t.Context(), run.Session, &client.ForkOptions{Edit: true, Text: "pay bill 119"})
	require.NoError(t, err)
	fork, err := anew.Start(t.Context())
	require.NoError(t, err)
	o, err = fork.Result(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{run.Session, fork.ID, string(agent.StatusCompleted)}, []string{o.Session, o.Run, string(o.Status)})
	require.Equal(t, []string{run.ID, fork.ID}, runsOf(t, cl, run.Session))
	require.NotEqual(t, run.ID, fork.ID)
}

// runsOf are the ids of a session's runs.
func runsOf(t *testing.T, cl *client.Client, session string) (ids []string) {
	t.Helper()
	runs, err := cl.Runs(t.Context(), session)
	require.NoError(t, err)
	for _, r := range runs {
		ids = append(ids, r.Run)
	}
	return ids
}
