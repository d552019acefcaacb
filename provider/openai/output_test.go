package openai_test

import (
	"net/http"
	"testing"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/openai"
)

// The model is told the schema of its answer in its first request, whatever the
// form of the request can carry.
func TestOutputReachesTheModel(t *testing.T) {
	for _, c := range []struct {
		api    openai.API
		own    bool
		answer http.HandlerFunc
	}{
		{openai.ChatCompletions, false, standin.Drip(wholeChat, 0)},
		{openai.ChatCompletions, true, standin.Drip(wholeChat, 0)},
		{openai.Responses, false, standin.Drip(wholeResponse, 0)},
		{openai.Responses, true, standin.Drip(wholeResponse, 0)},
	} {
		make := func(base string, _ *http.Client) model.Model {
			o := &openai.Options{APIKey: key, BaseURL: base + "/v1", API: c.api}
			if c.own {
				o.BaseURL, o.HTTPClient = "", detour(base)
			}
			return openai.New(o)
		}
		standin.OutputReaches(t, make, c.answer, *ask("Hello"), []agent.ToolSpec{now, weather})
	}
}
