package gemini_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/gemini"
)

// A tier of service and a call that is required are asked for; the tier's price is not known.
func TestOptions(t *testing.T) {
	s := standin.Listen(t, standin.Drip(whole, 0))
	o := gemini.Options{APIKey: key, BaseURL: s.URL, ServiceTier: "priority", ToolChoice: model.ToolChoiceRequired}
	req := ask("Hello")
	req.Tools = []agent.ToolSpec{now}
	standin.Reply(t, gemini.New(&o), req)
	require.Contains(t, string(s.Bodies[0]), `"serviceTier":"priority"`)
	require.Contains(t, string(s.Bodies[0]), `"functionCallingConfig":{"mode":"ANY"}`)
	require.Zero(t, gemini.New(&o).Info("gemini-3.5-flash").Price)
	o.ServiceTier = "standard"
	require.NotZero(t, gemini.New(&o).Info("gemini-3.5-flash").Price)
	for field, o := range map[string]gemini.Options{"tool_choice": {ToolChoice: "now"}, "service_tier": {ServiceTier: "scale"}} {
		var what *agent.Error
		require.ErrorAs(t, o.Check(), &what)
		require.Equal(t, field, what.Path)
	}
}
