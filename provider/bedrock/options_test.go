package bedrock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/provider/bedrock"
)

// Claude's cache lives for an hour if it is asked for, and costs that; other models have
// none. The price of a tier is not known.
func TestOptions(t *testing.T) {
	for name, ttl := range map[string]bool{"global.anthropic.claude-opus-5": true, "amazon.nova-pro-v1:0": false} {
		s := standin.Listen(t, streams())
		o := options(s.URL, token, nil)
		o.CacheTTL = time.Hour
		req := ask("Hello")
		req.Model, req.Instructions = name, "Be brief."
		_, err := bedrock.New(o).Generate(t.Context(), req, silent)
		require.Error(t, err) // there are no events
		require.Equal(t, ttl, strings.Contains(string(s.Bodies[0]), `{"type":"default","ttl":"1h"}`), "%s", s.Bodies[0])
		if price := bedrock.New(o).Info(name).Price; ttl {
			require.Equal(t, 10*agent.Dollar, price.CacheWrite)
		} else {
			require.Equal(t, price.Input, price.CacheWrite)
		}
		o.ServiceTier = "default"
		require.NotZero(t, bedrock.New(o).Info(name).Price)
		o.ServiceTier = "flex"
		require.Zero(t, bedrock.New(o).Info(name).Price)
		o.ServiceTier = "cheap"
		require.ErrorContains(t, o.Check(), "service_tier must be")
		_, err = bedrock.New(o).Generate(t.Context(), req, silent)
		require.ErrorContains(t, err, "service_tier must be")
		require.Len(t, s.Bodies, 1)
	}
}
