package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

const (
	monthsRuns  = 200
	monthsTurns = 10 // of each run
)

// metronome is a model that reads off the conversation what it has to say next: in
// each run some calls, and then a text.
type metronome struct{}

func (metronome) Info(string) model.Info { return model.Info{} }

func (metronome) Generate(_ context.Context, req *model.Request, _ func(model.Delta)) (*model.Reply, error) {
	turn := 0
	for i := len(req.Messages) - 1; req.Messages[i].Role != agent.RoleUser; i-- {
		if req.Messages[i].Role == agent.RoleAssistant {
			turn++
		}
	}
	if turn == monthsTurns-1 {
		text := fmt.Sprintf("%d messages before this one", len(req.Messages))
		return &model.Reply{Finish: model.FinishStop, Parts: []agent.Part{{Type: agent.PartText, Text: text}}}, nil
	}
	return &model.Reply{Finish: model.FinishToolCalls, Parts: []agent.Part{model.CallPart("x", "count", fmt.Sprintf(`{"n":%d}`, len(req.Messages)))}}, nil
}

var counted tool.Key[int] = "counted"

func counter() tool.Tool {
	type in struct {
		N int `json:"n"`
	}
	return tool.New("count", "", func(ctx context.Context, c *tool.Call, in in) (string, error) {
		before, _, err := counted.Get(ctx, c)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%d, the %d. time %s", in.N, before+1, strings.Repeat("z", 300)), counted.Set(c, before+1)
	}, &tool.Options{ReadOnly: true, Attempts: 20})
}

// A session of 200 runs and 2,000 turns whose workers are replaced at random has
// the transcript of one that nobody disturbed, byte for byte (HX-38).
func TestASessionOfMonths(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	server := shared(t)
	calm, wild := on(t, server), on(t, server)
	calm.startCounterWorker(t)
	wild.begun = make(chan struct{}, 1)
	done, cancel := context.WithCancel(t.Context())
	var replacing sync.WaitGroup
	replaced := 0
	replacing.Go(func() {
		for replaced = 0; done.Err() == nil; replaced++ {
			w := wild.startCounterWorker(t)
			for runs := 5 + rand.IntN(20); runs > 0 && done.Err() == nil; runs-- {
				select {
				case <-done.Done():
				case <-wild.begun:
				}
			}
			w.Stop() // in the middle of a run that has just begun
		}
	})
	transcripts := map[*stage][]byte{}
	var mu sync.Mutex
	var both sync.WaitGroup
	for _, s := range []*stage{calm, wild} {
		both.Go(func() {
			transcript := s.months(t)
			mu.Lock()
			defer mu.Unlock()
			transcripts[s] = transcript
		})
	}
	both.Wait()
	cancel()
	replacing.Wait()
	require.NotEmpty(t, transcripts[calm])
	require.True(t, bytes.Equal(transcripts[calm], transcripts[wild]))
	t.Logf("%d workers, %d bytes of transcript", replaced, len(transcripts[calm]))
}

func (s *stage) startCounterWorker(t *testing.T) *worker.Worker {
	w, err := worker.New(s.temporal, &worker.Options{
		TaskQueue: s.queue, Store: s.dir, Logger: zap.NewNop(), Tools: []tool.Tool{counter()}, Temporal: stopsSoon,
		Agents: []agent.Definition{{Name: "tester", Model: "metronome", Tools: []string{"count"}}}, Models: map[string]model.Model{"metronome": metronome{}},
	})
	if err == nil {
		err = w.Start(context.WithoutCancel(t.Context()))
	}
	if err != nil {
		t.Error(err)
		return nil
	}
	return w
}

// months makes all runs of a session and returns what was said.
func (s *stage) months(t *testing.T) []byte {
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	session, begun := "months-"+s.queue, time.Now()
	for i := range monthsRuns {
		select {
		case s.begun <- struct{}{}:
		default:
		}
		run, err := s.Start(ctx, "tester", fmt.Sprintf("go %d", i), &client.StartOptions{Session: session})
		if err != nil {
			t.Error(err)
			return nil
		}
		out, err := run.Result(ctx)
		if err != nil || out.Status != agent.StatusCompleted {
			t.Errorf("run %d: %v %+v", i, err, out)
			return nil
		}
	}
	t.Logf("%d runs in %v", monthsRuns, time.Since(begun).Round(time.Second))
	messages, err := s.Transcript(ctx, session)
	if err != nil {
		t.Error(err)
		return nil
	}
	raw, err := json.Marshal(messages)
	if err != nil {
		t.Error(err)
	}
	return raw
}
