package e2e

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	temporal "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// recordedEnv makes a process of this test binary a worker whose model is at a recorder.
const recordedEnv = "FERMATA_E2E_RECORDED"

// recordedPlace is where such a worker works. It always has a folder and no keys: the test looks
// into the files.
type recordedPlace struct {
	Addr, Queue, Dir string
	Provider, Base   string
	Keys             map[string]ed25519.PublicKey // of exports
}

func (p recordedPlace) store() (store.Store, error) {
	return store.OpenDir(filepath.Join(p.Dir, "store"), nil)
}

// logs are all that the process has to say.
func (p recordedPlace) logs() string { return filepath.Join(p.Dir, "log") }

// dial returns a client that writes all its words into the log.
func (p recordedPlace) dial() (temporal.Client, *zap.Logger, error) {
	to, err := os.OpenFile(p.logs(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, err
	}
	o := temporal.Options{Logger: log.NewStructuredLogger(slog.New(slog.NewJSONHandler(to, &slog.HandlerOptions{Level: slog.LevelDebug})))}
	if err := client.Prepare(&o, nil); err != nil {
		return nil, nil, err
	}
	c, err := remote(p.Addr).Dial(context.Background(), o)
	return c, zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.Lock(to), zap.DebugLevel)), err
}

func workRecorded(spec string) error {
	var p recordedPlace
	if err := json.Unmarshal([]byte(spec), &p); err != nil {
		return err
	}
	standin.Keep()
	c, words, err := p.dial()
	if err != nil {
		return err
	}
	st, err := p.store()
	if err != nil {
		return err
	}
	// The window holds the conversation, but not a long message beside it.
	of := providers[p.Provider]
	m := model.WithInfo(of.make(p.Base), of.model, model.Info{Window: 26_000, MaxOutput: 4000})
	return workFor(c, &worker.Options{
		TaskQueue: p.Queue, Store: st, Logger: words, Models: map[string]model.Model{"recorded": m}, Tools: []tool.Tool{drawing(p.Provider)},
		Agents: []agent.Definition{{Name: "tester", Model: "recorded", Tools: []string{"draw"}, Compaction: agent.CompactionPolicy{KeepLast: 1}}}, ExportKeys: signals.Keys(p.Keys),
	})
}

// drawing returns a tool that shows a chart, or only says that it is drawn.
func drawing(provider string) tool.Tool {
	type in struct {
		Show bool `json:"show"`
	}
	return tool.New("draw", "draws a chart", func(ctx context.Context, c *tool.Call, in in) (string, error) {
		if in.Show {
			if err := c.AddFile(ctx, shownTo(provider).chart); err != nil {
				return "", err
			}
		}
		return "It is drawn.", nil
	}, nil)
}

// recordedStage is a stage whose workers are processes, with a model at a recorder.
func recordedStage(t *testing.T, server place, provider string, at *recorder) (*stage, recordedPlace) {
	t.Helper()
	p := recordedPlace{server.Addr(), provider + "-" + uuid.NewString()[:8], t.TempDir(), provider, at.URL, exportKeys}
	st, err := p.store()
	require.NoError(t, err)
	c, _, err := p.dial()
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return &stage{temporal: c, addr: p.Addr, queue: p.Queue, dir: st, store: st, Client: client.New(c, &client.Options{TaskQueue: p.Queue, Store: st})}, p
}

// work starts a worker process, which works until it is killed.
func (p recordedPlace) work(t *testing.T) *exec.Cmd {
	t.Helper()
	spec, err := json.Marshal(p)
	require.NoError(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), recordedEnv+"="+string(spec))
	ready(t, cmd)
	return cmd
}
