package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/internal/testenv"
)

// killBills is how often the killed flow pays, three at once.
const killBills = 30

func killFlow() flow.Flow {
	return flow.New("payer", func(c flow.Context, _ string) (int, error) {
		paid, err := flow.Map(c, "bill", make([]int, killBills), func(c flow.Context, _ int) (string, error) {
			return flow.Tool[string](c, "pay", map[string]any{}, nil)
		}, &flow.MapOptions{Width: 3})
		return len(flow.Values(paid)), err
	}, &flow.Options{Tools: []string{"pay"}})
}

// paymentsByKey reads the journal: how often each key was paid.
func paymentsByKey(t *testing.T, dir string) map[string]int {
	t.Helper()
	written, err := os.ReadFile(filepath.Join(dir, "journal"))
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	paid := map[string]int{}
	for key := range strings.Lines(string(written)) {
		paid[strings.TrimSpace(key)]++
	}
	return paid
}

// A flow's workers are killed with -9 while it pays, again and again. Whether a payment was made
// in which a worker died, a person is asked, who looks. Every payment is made once, and none again
// that was done (OA-95, OA-98, OA-99, OA-102).
func TestAFlowsWorkersAreKilled(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	server := shared(t)
	c := dial(t, server)
	var all sync.WaitGroup
	var unknown atomic.Int32
	for seed := range uint64(4) {
		dir, queue := t.TempDir(), fmt.Sprintf("kill-flow-%d", seed)
		cl := client.New(c, &client.Options{TaskQueue: queue, Store: stored(t, dir)})
		run, err := cl.Start(t.Context(), "payer", "pay all", nil)
		require.NoError(t, err)
		ended, end := context.WithCancel(t.Context())
		all.Go(func() {
			defer end()
			killWhileItPays(t, server.Addr(), queue, dir, run, seed)
		})
		all.Go(func() {
			asked := lookAndAnswer(ended, t, cl, run, dir)
			out, err := run.Result(t.Context())
			require.NoError(t, err)
			require.Equal(t, strconv.Itoa(killBills), string(out.Output), "seed %d: %+v", seed, out.Error)
			paid := paymentsByKey(t, dir)
			require.Len(t, paid, killBills)
			for key, n := range paid {
				require.Equal(t, 1, n, "seed %d: %s", seed, key)
			}
			unknown.Add(int32(len(asked)))
			t.Logf("seed %d: a person was asked about %v", seed, slices.Sorted(maps.Keys(asked)))
		})
	}
	all.Wait()
	require.Positive(t, unknown.Load(), "no worker died in a payment")
}

// killWhileItPays kills the run's worker four times, each soon after some more payments, and lets
// the fifth go on. What it has in progress then may have been paid or not.
func killWhileItPays(t *testing.T, addr, queue, dir string, run *client.Run, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 2))
	for range 4 {
		w := startWorker(t, addr, queue, dir)
		enough := len(paymentsByKey(t, dir)) + 1 + random.IntN(4)
		paid := func() bool { return len(paymentsByKey(t, dir)) >= enough }
		if !assert.Eventually(t, paid, patience, time.Millisecond) {
			return
		}
		kill(w)
	}
	startWorker(t, addr, queue, dir)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := run.Result(ctx)
	assert.NoError(t, err)
}

// lookAndAnswer answers what the run asks about payments of which it does not know, by the
// journal. It returns how it has answered.
func lookAndAnswer(ctx context.Context, t *testing.T, cl *client.Client, run *client.Run, dir string) map[string]string {
	said := map[string]string{}
	for ctx.Err() == nil {
		soon, cancel := context.WithTimeout(ctx, time.Second)
		st, err := run.Status(soon)
		open := st.Requests
		if err == nil && st.Suspension != nil {
			open = st.Suspension.Requests
		}
		for _, r := range open {
			text := "again"
			if paymentsByKey(t, dir)[agent.IdempotencyKey(run.ID, r.Step)] > 0 {
				text = "done"
			}
			if _, err := cl.Answer(soon, r, text, nil); err == nil {
				said[r.Step] = text
			}
		}
		cancel()
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond): // a worker needs its time too
		}
	}
	return said
}
