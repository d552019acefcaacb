package openai_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/openai"
)

func TestEndless(t *testing.T) {
	long := strings.Repeat("x", 64<<10)
	open := func(api openai.API) standin.Making {
		return func(base string, client *http.Client) model.Model {
			return openai.New(&openai.Options{APIKey: key, BaseURL: base, HTTPClient: client, API: api})
		}
	}
	call := func(name, arguments string) string {
		return `{"id":"a","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"` + name + `","arguments":"` + arguments + `"}}]}}]}`
	}
	standin.Endless(t, open(openai.ChatCompletions), ask("Hello"), key, "", map[string]string{
		"arguments": stream(call("pay", long)),
		"calls":     stream(call("pay", "{}")),
	})
	standin.Endless(t, open(openai.Responses), ask("Hello"), key, "", map[string]string{
		"items": stream(`{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"c","name":"pay","arguments":"` + long + `"}}`),
		"steps": stream(`{"type":"response.output_item.done","output_index":0,"item":{"type":"web_search_call","id":"w","action":{"type":"search","query":"x"}}}`),
	})
}
