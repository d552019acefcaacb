package activities

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	sdktest "go.temporal.io/sdk/testsuite"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/store"
)

// far is a store that takes as long to read a head or a chunk as a bucket in another region, in skipped time.
type far struct{ *store.Dir }

func (far) reads() { <-time.After(50 * time.Millisecond) }

func (f far) Head(ctx context.Context, session string) (store.Head, error) {
	f.reads()
	return f.Dir.Head(ctx, session)
}

func (f far) Chunk(ctx context.Context, name string) ([]byte, error) {
	f.reads()
	return f.Dir.Chunk(ctx, name)
}

func (f far) ChunkStart(ctx context.Context, name string, most int) ([]byte, error) {
	f.reads()
	return f.Dir.ChunkStart(ctx, name, most)
}

// chat stores a session of so many turns, each sealed when it ended, and returns its last event.
func chat(t *testing.T, dir *store.Dir, turns int) (last int64) {
	t.Helper()
	log, text, prev := store.NewLog(dir), strings.Repeat("lorem ipsum ", 100), ""
	tail := []agent.Event{{Type: agent.EventRunStarted, Started: &agent.Started{Run: "run-1", Spec: &agent.Spec{}}}}
	for turn := range turns {
		say := func(role agent.Role) *agent.Message {
			return &agent.Message{Role: role, Parts: []agent.Part{{Type: agent.PartText, Text: fmt.Sprint(turn, text)}}}
		}
		tail = append(tail, agent.Event{Type: agent.EventMessage, Message: say(agent.RoleUser)}, agent.Event{Type: agent.EventMessage, Message: say(agent.RoleAssistant)},
			agent.Event{Type: agent.EventTurnEnded, Turn: turn + 1, Snapshot: &agent.TurnSnapshot{}})
		for i := range tail {
			last++
			tail[i].Seq = last
		}
		var err error
		prev, err = log.Seal(t.Context(), prev, "chat", "run-1", false, tail)
		require.NoError(t, err)
		tail = nil
	}
	require.NoError(t, dir.PutHead(t.Context(), store.Head{V: 1, Version: 1, Session: "chat", Run: "run-1", Status: agent.StatusCompleted, Digest: prev, Seq: last}))
	return last
}

// A run that continues a chat of 2,000 turns, or begins at a checkpoint in it, finds where it begins within
// half a second, though the store is far: chunks are read many at once.
func TestALongChatInAFarStoreIsLocated(t *testing.T) {
	dir, err := store.OpenDir(t.TempDir(), nil)
	require.NoError(t, err)
	last := chat(t, dir, 2_000)
	for name, in := range map[string]loop.LocateArgs{
		"the next run":    {Session: "chat", Fence: agent.Fence{Chain: 2, N: 2}},
		"at a checkpoint": {Session: "fork", From: &agent.StartFrom{Session: "chat", Checkpoint: agent.CheckpointID("chat", last-3_000)}, Fence: agent.Fence{Chain: 2, N: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				acts := &Activities{Client: &liveRun{closed: enums.WORKFLOW_EXECUTION_STATUS_COMPLETED}, Log: store.NewLog(far{dir})}
				var suite sdktest.WorkflowTestSuite
				env := suite.NewTestActivityEnvironment()
				acts.Register(env)
				begun := time.Now()
				_, err := env.ExecuteActivity(Locate.Name, in)
				require.NoError(t, err)
				require.Less(t, time.Since(begun), 500*time.Millisecond)
			})
		})
	}
}
