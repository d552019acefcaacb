package activities

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	sdk "go.temporal.io/sdk/testsuite"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/internal/play"
)

// away is a server that nobody reaches.
type away struct{ client.Client }

func (away) QueryWorkflow(context.Context, string, string, string, ...any) (converter.EncodedValue, error) {
	return nil, serviceerror.NewUnavailable("down")
}

// A step whose log can't be read has not begun. It is handed back for another worker, or for later,
// and uses up none of its attempts, also if it has only one.
func TestAStepWhoseLogCantBeRead(t *testing.T) {
	for name, in := range map[string]ToolInput{
		"its code":       {},
		"long arguments": {ArgumentsInLog: true},
	} {
		t.Run(name, func(t *testing.T) {
			d := &Activities{
				Client: away{}, LogCache: NewLogCache(), InFlight: NewInFlight(), Plays: NewPlays(), Logger: slog.New(slog.DiscardHandler),
				Flows: map[string]play.Function{"f": func(*play.Context, []byte) (play.Done, error) { return play.Done{}, nil }},
			}
			in.ToolArgs = loop.ToolArgs{Agent: "f", Call: "c", Tool: agent.DoTool, Step: "pay", Attempts: 1, Timeout: agent.Duration(50 * time.Millisecond)}
			var suite sdk.WorkflowTestSuite
			env := suite.NewTestActivityEnvironment()
			env.SetTestTimeout(time.Minute)
			CallTool.Register(env, d.makeCall)
			_, err := env.ExecuteActivity(CallTool.Name, in)
			var back durable.NoSlot
			require.ErrorAs(t, durable.FromTemporal(err), &back)
			require.Equal(t, agent.CodeStoreUnavailable, back.Missing.Code)
			require.Zero(t, back.Tried)
		})
	}
}
