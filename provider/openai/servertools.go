package openai

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// Items of Responses that are steps of the server's own tools.
const (
	webSearchCall       = "web_search_call"
	codeInterpreterCall = "code_interpreter_call"
)

// serve adds the server's own tools to a request. The output of code has to be requested
// separately.
func (m *Model) serve(p *responses.ResponseNewParams) {
	for _, t := range m.with.ServerTools {
		if t == model.WebSearch {
			p.Tools = append(p.Tools, responses.ToolUnionParam{OfWebSearch: &responses.WebSearchToolParam{Type: responses.WebSearchToolTypeWebSearch}})
			continue
		}
		auto := responses.ToolCodeInterpreterContainerUnionParam{OfCodeInterpreterToolAuto: &responses.ToolCodeInterpreterContainerCodeInterpreterContainerAutoParam{}}
		p.Tools = append(p.Tools, responses.ToolUnionParam{OfCodeInterpreter: &responses.ToolCodeInterpreterParam{Container: auto}})
		p.Include = append(p.Include, responses.ResponseIncludableCodeInterpreterCallOutputs)
	}
}

// stepItem returns a step as the server wrote it.
func stepItem(p agent.Part) responses.ResponseInputItemUnionParam {
	raw := param.Override[responses.ResponseFunctionWebSearchParam](p.Raw)
	return responses.ResponseInputItemUnionParam{OfWebSearchCall: &raw}
}

// stepOf returns the part for a step of the server's own tools; false for any other item.
func stepOf(item responses.ResponseOutputItemUnion) (agent.Part, bool) {
	switch item.Type {
	case webSearchCall:
		what := cmp.Or(item.Action.Query, strings.Join(item.Action.Queries, "; "), item.Action.URL)
		return model.ServerToolPart("web_search "+what, json.RawMessage(item.RawJSON())), true
	case codeInterpreterCall:
		return model.ServerToolPart("code_interpreter "+item.Code, json.RawMessage(item.RawJSON())), true
	}
	return agent.Part{}, false
}

// searches returns how many searches an item counts for: opened pages cost nothing.
func searches(item responses.ResponseOutputItemUnion) int64 {
	if item.Type == webSearchCall && item.Action.Type == "search" {
		return 1
	}
	return 0
}
