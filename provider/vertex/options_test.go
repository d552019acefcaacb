package vertex_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/provider/vertex"
)

// What Claude writes to the cache lives for an hour if it is asked for, and costs that.
func TestCacheTTL(t *testing.T) {
	bare(t)
	s := standin.Listen(t, standin.Answer(200, "text/event-stream", claude))
	o := vertex.Options{BaseURL: s.URL, Project: "my-project", CacheTTL: time.Hour, Tokens: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: token})}
	standin.Reply(t, vertex.New(&o), ask(sonnet))
	require.Contains(t, string(s.Bodies[0]), `"ttl":"1h"`)
	require.Equal(t, 6*agent.Dollar, vertex.New(&o).Info(sonnet).Price.CacheWrite)
	o.CacheTTL = 2 * time.Hour
	require.ErrorContains(t, o.Check(), "cache_ttl must be 5m or 1h")
}
