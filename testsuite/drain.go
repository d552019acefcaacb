package testsuite

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/worker"
)

// Drain waits until the worker's observers have received what the runs have done so far. Call
// it before you look at what an observer has received: it receives events later than they
// happen. An observer that takes longer than two minutes fails the test.
func (s *Env) Drain() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patient)
	defer cancel()
	require.NoError(s.t, s.backend.drain(ctx))
}

func (r *testEnvBackend) drain(ctx context.Context) error { return r.parts.Drain(ctx) }

func (p *serverBackend) drain(ctx context.Context) error { return p.workers.drain(ctx) }

// workers are the workers of an Env: one, or two around a crash.
type workers struct {
	mu   sync.Mutex
	list []*worker.Worker
}

func (ws *workers) add(w *worker.Worker) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.list = append(ws.list, w)
}

func (ws *workers) drain(ctx context.Context) error {
	ws.mu.Lock()
	list := slices.Clone(ws.list)
	ws.mu.Unlock()
	var errs []error
	for _, w := range list {
		errs = append(errs, w.Drain(ctx))
	}
	return errors.Join(errs...)
}
