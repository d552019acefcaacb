package anthropic_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/anthropic"
)

// What is written to the cache lives for an hour if it is asked for, and costs that.
func TestCacheTTL(t *testing.T) {
	for ttl, want := range map[time.Duration]int{0: 0, 5 * time.Minute: 0, time.Hour: 3} {
		s := standin.Listen(t, standin.Answer(200, "text/event-stream", whole))
		m := anthropic.New(&anthropic.Options{APIKey: key, BaseURL: s.URL, CacheTTL: ttl, ServiceTier: "standard_only"})
		standin.Reply(t, m, &model.Request{Model: "claude-opus-5", Instructions: "Be brief.", Messages: conversation[:3]})
		body := string(s.Bodies[0])
		require.Equal(t, want, strings.Count(body, `"ttl":"1h"`), body)
		require.Contains(t, body, `"service_tier":"standard_only"`)
		price := m.Info("claude-opus-5").Price
		require.Equal(t, 5*agent.Dollar, price.Input)
		if want > 0 {
			require.Equal(t, 10*agent.Dollar, price.CacheWrite)
			require.Zero(t, m.Info("claude-of-tomorrow").Price)
		} else {
			require.Equal(t, 25*agent.Dollar/4, price.CacheWrite)
		}
	}
	for field, o := range map[string]anthropic.Options{"cache_ttl": {CacheTTL: 2 * time.Hour}, "service_tier": {ServiceTier: "flex"}} {
		var what *agent.Error
		require.ErrorAs(t, o.Check(), &what)
		require.Equal(t, field, what.Path)
		o.APIKey = key
		_, err := anthropic.New(&o).Generate(t.Context(), ask("Hello"), silent)
		require.ErrorContains(t, err, what.Message)
	}
}
