package activities

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/tool"
)

// broken is a source that panics.
type broken struct {
	tool.Source
	optional bool
}

func (broken) Name() string { return "wiki" }

func (b broken) Optional() bool { return b.optional }

func (broken) List(context.Context) ([]agent.ToolSpec, error) { panic("no list") }

func (broken) Relist(context.Context, string, string) ([]agent.ToolSpec, bool) { panic("no list") }

// A source that panics fails the step that lists it, or is left out if runs can do without;
// it ends no worker. After a call it has the tools that it had.
func TestASourceThatPanics(t *testing.T) {
	for _, optional := range []bool{false, true} {
		d := &Deeds{Sources: map[string]tool.Source{"wiki": broken{optional: optional}}, Logger: slog.New(slog.DiscardHandler)}
		var out ListResult
		err := inActivity(t, func(ctx context.Context) (err error) {
			out, err = d.list(ctx, loop.ListStep{Session: "s", Run: "r", Sources: []string{"wiki"}})
			return err
		})
		if optional {
			require.NoError(t, err)
			require.Equal(t, "The tools of wiki are not available in this run: the tool source panicked: no list", out.Instructions)
		} else {
			require.ErrorContains(t, err, "listing the tools of wiki: the tool source panicked: no list")
		}
		require.Nil(t, d.relisted(t.Context(), ToolInput{ToolStep: loop.ToolStep{Tool: "wiki__look"}}))
	}
}
