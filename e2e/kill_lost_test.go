package e2e

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/model"
)

// deadly is a model whose every call kills its process, until the file cured is there.
type deadly struct{ dir string }

func (deadly) Info(string) model.Info { return model.Info{} }

func (d deadly) Generate(ctx context.Context, _ *model.Request, _ func(model.Delta)) (*model.Reply, error) {
	if _, err := os.Stat(filepath.Join(d.dir, "cured")); err == nil {
		return saysText("done"), nil
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return nil, err
	}
	if err := self.Kill(); err != nil {
		return nil, err
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// A model call that kills its process each time kills five. Then its run is suspended and in the
// inbox, and no sixth process is lost. When the cause is gone, a resume makes the call again.
func TestACallThatKillsFiveProcessesSuspendsItsRun(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	c := newCell(t, "kill-lost")
	_, ended := startMortal(t, c.addr, c.queue, c.dir)
	run, err := c.Start(t.Context(), "victim", "go", nil)
	require.NoError(t, err)
	rests := make(chan *agent.Outcome, 1)
	go func() {
		o, err := run.Wait(t.Context())
		assert.NoError(t, err)
		rests <- o
	}()
	lost, o := 0, (*agent.Outcome)(nil)
	for lost <= 5 && o == nil {
		select {
		case <-ended: // a call is made again when its process was missed for 30 seconds, and after a while
			lost++
			_, ended = startMortal(t, c.addr, c.queue, c.dir)
		case o = <-rests:
		case <-time.After(patience):
			require.Fail(t, "the call is not made again, and its run does not rest")
		}
	}
	require.Equal(t, 5, lost)
	require.NotNil(t, o)
	require.Equal(t, agent.StatusSuspended, o.Status, "%+v", o.Error)
	require.Equal(t, string(agent.CodeWorkerLost), o.Suspension.Cause)
	require.Eventually(t, func() bool {
		for item, err := range c.Inbox(t.Context(), &client.InboxOptions{WaitsFor: string(client.RequestWorkerLost), Session: run.Session}) {
			return err == nil && item.Cause == agent.CodeWorkerLost
		}
		return false
	}, patience, 20*time.Millisecond)
	require.NoError(t, os.WriteFile(filepath.Join(c.dir, "cured"), nil, 0o600))
	_, err = run.Resume(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, agent.StatusCompleted, waitFor(t, run).Status)
}
