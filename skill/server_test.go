package skill

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// Runs that need a skill of a server at the same time ask it once. A run that is cancelled leaves at
// once, and takes the answer from no other run. After an error the next run asks again.
func TestASkillOfAServerIsReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type answer struct {
			text string
			err  error
		}
		text, answers, reads := front("refunds", ""), make(chan answer), 0
		s, err := FromServer(Entry{
			Server: "desk", URI: "skill://refunds/SKILL.md", Frontmatter: json.RawMessage(`{"name":"refunds","description":"Does things."}`),
			Files: []EntryFile{{URI: "skill://refunds/SKILL.md", Digest: "sha256:" + sumOf([]byte(text)), Size: int64(len(text))}},
			Read: func(ctx context.Context, _ string) ([]byte, error) {
				reads++
				a := <-answers
				if a.text == "panic" {
					panic("it can't be read")
				}
				return []byte(a.text), errors.Join(a.err, ctx.Err())
			},
		})
		require.NoError(t, err)
		load := func(ctx context.Context) <-chan error {
			done := make(chan error, 1)
			go func() {
				full, err := s.Loaded(ctx)
				if err == nil && full.Instructions != "Do it." {
					err = errors.New(full.Instructions)
				}
				done <- err
			}()
			synctest.Wait()
			return done
		}
		var waiting []<-chan error
		all := func(n int) {
			waiting = nil
			for range n {
				waiting = append(waiting, load(t.Context()))
			}
		}
		for i, a := range []answer{{err: errors.New("busy")}, {text: "panic"}} {
			all(3)
			answers <- a
			for _, done := range waiting {
				require.ErrorIs(t, <-done, agent.CodeToolFailed)
			}
			require.Equal(t, i+1, reads)
		}
		ctx, leave := context.WithCancel(t.Context())
		first := load(ctx)
		all(50)
		leave()
		require.ErrorIs(t, <-first, context.Canceled)
		answers <- answer{text: text}
		for _, done := range append(waiting, load(t.Context())) {
			require.NoError(t, <-done)
		}
		require.Equal(t, 3, reads)
	})
}
