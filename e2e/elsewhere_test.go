package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// moved counts the bytes of transcripts that processes fetch: from runs, by queries, and
// from the store.
type moved struct {
	store.Store
	bytes atomic.Int64
}

func (m *moved) Chunk(ctx context.Context, digest string) ([]byte, error) {
	data, err := m.Store.Chunk(ctx, digest)
	m.bytes.Add(int64(len(data)))
	return data, err
}

func (m *moved) intercept(ctx context.Context, method string, in, out any, conn *grpc.ClientConn, call grpc.UnaryInvoker, o ...grpc.CallOption) error {
	err := call(ctx, method, in, out, conn, o...)
	if r, ok := out.(*workflowservice.QueryWorkflowResponse); ok {
		m.bytes.Add(int64(proto.Size(r)))
	}
	return err
}

// scribe is a model that calls a tool whose result is long, a few times, and notes when
// each of its calls began.
type scribe struct {
	turns int
	mu    sync.Mutex
	begun []time.Time
}

func (*scribe) Info(string) model.Info { return model.Info{} }

func (s *scribe) Generate(_ context.Context, req *model.Request, _ func(model.Delta)) (*model.Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun = append(s.begun, time.Now())
	if req.Call.Turn <= s.turns {
		return asksFor(model.CallPart("", "read", fmt.Sprintf(`{"page":%d}`, req.Call.Turn))), nil
	}
	return saysText("done"), nil
}

// pageSize is how long what the tool returns is.
const pageSize = 40 << 10

// library starts workers whose models are rated, each a process of its own except for its memory.
func (s *stage) library(t *testing.T, m *scribe, rate worker.RateLimit, workers int) *moved {
	t.Helper()
	moves := &moved{Store: s.dir}
	read := tool.New("read", "", func(_ context.Context, _ *tool.Call, in map[string]int) (string, error) {
		return strings.Repeat(string(rune('a'+in["page"])), pageSize), nil
	}, nil)
	for range workers {
		o := connection(slog.DiscardHandler)
		o.ConnectionOptions.DialOptions = append(o.ConnectionOptions.DialOptions, grpc.WithChainUnaryInterceptor(moves.intercept))
		c, err := shared(t).Dial(t.Context(), o)
		require.NoError(t, err)
		t.Cleanup(c.Close)
		w, err := worker.New(c, &worker.Options{
			TaskQueue: s.queue, Store: moves, Logger: zap.NewNop(), Temporal: stopsSoon, Tools: []tool.Tool{read},
			Agents: []agent.Definition{{Name: "tester", Model: "p/m", Tools: []string{"read"}}}, Models: map[string]model.Model{"p/m": m}, RateLimits: map[string]worker.RateLimit{"p": rate},
		})
		require.NoError(t, err)
		require.NoError(t, w.Start(t.Context()))
		t.Cleanup(w.Stop)
	}
	return moves
}

// A call that is rated is made by whichever process the server gives it to; but none
// fetches a long log for it.
func TestRatedCallsOfALongRunMoveNoLog(t *testing.T) {
	t.Parallel()
	const turns = 12
	s, m := on(t, shared(t)), &scribe{turns: turns}
	t.Cleanup(func() { s.replay(t) })
	moves := s.library(t, m, worker.RateLimit{PerSecond: 1000}, 3)
	_, o := s.run(t, "read", nil)
	require.Equal(t, agent.StatusCompleted, o.Status, "%+v", o.Error)
	require.Len(t, m.begun, turns+1)
	require.Less(t, moves.bytes.Load(), int64(2*pageSize), "of a log of %d bytes", turns*pageSize)
}

// However calls come to the process that makes them, all together begin no more often than
// the rate allows.
func TestCallsThatAreMadeNearKeepTheRate(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	const perSecond, runs, turns = 5, 4, 5
	s, m := on(t, shared(t)), &scribe{turns: turns}
	s.library(t, m, worker.RateLimit{PerSecond: perSecond}, 3)
	completed(t, s.told(t, runs, "read")...)
	require.Len(t, m.begun, runs*(turns+1))
	slices.SortFunc(m.begun, time.Time.Compare)
	// The server lets a burst of a second's calls through at once.
	for i := 2*perSecond + 1; i < len(m.begun); i++ {
		require.Greater(t, m.begun[i].Sub(m.begun[i-2*perSecond-1]), time.Second*9/10, "the %dth call", i)
	}
}
