package activities

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
	"github.com/fermata-agents/fermata/skill"
	"github.com/fermata-agents/fermata/store"
)

// A server that hangs leaves the model the half of a call's time. The third attempt calls the model
// without the skill, so the run goes on.
func TestAServerThatHangsLeavesTheModelItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, err := skill.FromServer(skill.Entry{
			Server: "desk", URI: "skill://refunds/SKILL.md", Frontmatter: json.RawMessage(`{"name":"refunds","description":"x"}`),
			Files: []skill.EntryFile{{URI: "skill://refunds/SKILL.md", Digest: "sha256:" + strings.Repeat("0", 64), Size: 1}},
			Read: func(context.Context, string) ([]byte, error) {
				<-t.Context().Done()
				return nil, t.Context().Err()
			},
		})
		require.NoError(t, err)
		d := &Activities{Skills: map[string]*skill.Skill{k.Name: k}, Logger: slog.New(slog.DiscardHandler)}
		order := &wire.SkillOrder{Load: []agent.SkillUpdate{{Name: k.Name, Digest: k.Digest}}}
		for tried := range skillAttempts {
			require.NoError(t, inActivity(t, func(ctx context.Context) error {
				left := time.Until(activity.GetInfo(ctx).Deadline)
				in := ModelInput{Tried: tried}
				in.Skills = order
				came, err := d.readSkills(ctx, &store.View{}, &agent.Spec{}, in, nil)
				require.InDelta(t, left/2, time.Until(activity.GetInfo(ctx).Deadline), float64(time.Second))
				if tried+1 < skillAttempts {
					require.ErrorIs(t, err, agent.CodeToolFailed)
					var again *agent.Error
					require.ErrorAs(t, err, &again)
					require.True(t, again.Retryable)
					return nil
				}
				require.NoError(t, err)
				require.Equal(t, agent.CodeToolFailed, came.Read[0].Error.Code)
				return nil
			}))
		}
	})
}
