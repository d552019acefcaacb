package testsuite

import "github.com/fermata-agents/fermata/agent"

// ScriptFromMessages returns a script of the replies that a model gave in a conversation,
// such as [Run.Transcript] or client.Transcript returns it. So a test can repeat a real
// conversation at no cost.
func ScriptFromMessages(messages []agent.Message) *Script {
	var replies []Reply
	for _, m := range messages {
		if m.Role != agent.RoleAssistant {
			continue
		}
		r := Reply{Citations: m.Citations()}
		for _, p := range m.Parts {
			switch {
			case p.Call != nil:
				r.Calls = append(r.Calls, Call{Tool: p.Call.Tool, Raw: string(p.Call.Arguments), ID: p.Call.ProviderID})
			case p.Type == agent.PartThinking:
				r.Thinking += p.Text
			case p.Type == agent.PartText:
				r.Text += p.Text
			}
		}
		replies = append(replies, r)
	}
	return NewScript(replies...)
}
