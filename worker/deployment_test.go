package worker_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/worker"
)

// What the server would refuse later, or take for something else, is refused at once.
func TestVersionsThatCannotBe(t *testing.T) {
	for _, c := range []struct{ deployment, build, says string }{
		{"shop", "", "worker.Options.Build is missing: a Deployment needs it"},
		{"shop.eu", "1", `worker.Options.Deployment is "shop.eu"`},
		{"shop:eu", "1", `worker.Options.Deployment is "shop:eu"`},
		{"__shop", "1", `worker.Options.Deployment is "__shop"`},
		{strings.Repeat("a", 101), "1", "at most 100"},
		{"shop", "(devel)", `worker.Options.Build is "(devel)"`},
		{"shop", "__1", `worker.Options.Build is "__1"`},
		{"agents/shop_eu-1", "v1.2.3-0.2026+dirty", ""},
		{"", "(devel)", ""},
	} {
		_, err := worker.New(nil, &worker.Options{Deployment: c.deployment, Build: c.build})
		require.ErrorIs(t, err, agent.CodeInvalidInput)
		if c.says != "" {
			require.ErrorContains(t, err, c.says)
			continue
		}
		require.NotContains(t, err.Error(), "worker.Options.Deployment")
		require.NotContains(t, err.Error(), "worker.Options.Build")
	}
}
