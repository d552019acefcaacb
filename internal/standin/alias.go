package standin

import (
	"net/http"
	"testing"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// Aliased asks a model under an agent's own names for it, and again with its reply. It
// returns the second requests. The caller checks that each has the model's thoughts.
func Aliased(t *testing.T, make Making, answer http.HandlerFunc, name string) [][]byte {
	t.Helper()
	var again [][]byte
	for _, alias := range []string{"brain", "house/brain"} {
		s := Listen(t, answer)
		m := model.WithInfo(make(s.URL, nil), name, model.Info{})
		req := &model.Request{Call: model.CallInfo{Model: alias}, Messages: []agent.Message{agent.TextMessage(agent.RoleUser, "Go.")}}
		reply, _ := Reply(t, m, req)
		for i, p := range reply.Parts {
			if p.Type == agent.PartToolCall {
				reply.Parts[i].Call.ID = "t1.1"
			}
		}
		req.Messages = append(req.Messages, agent.Message{Role: agent.RoleAssistant, Model: alias, ProviderModel: reply.ProviderModel, Parts: reply.Parts})
		if calls := req.Messages[1].ToolCalls(); len(calls) > 0 {
			req.Messages = append(req.Messages, agent.Message{Role: agent.RoleTool, Parts: []agent.Part{Result(calls[0].ID, calls[0].Tool, agent.CallOK, "done")}})
		}
		Reply(t, m, req)
		again = append(again, s.Bodies[1])
	}
	return again
}
