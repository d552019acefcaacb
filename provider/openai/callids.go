package openai

import (
	"cmp"
	"regexp"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// kimi matches the models of Moonshot, on any server. Their templates show them the ids
// of calls, "functions.NAME:0". With other ids they call tools wrongly.
var kimi = regexp.MustCompile(`(?i)(^|/)kimi-`)

// ours matches our own ids. A server's id of this form is not kept, because it could be
// confused with ours.
var ours = regexp.MustCompile(`^call\d+$`)

// callIDs returns the ids of a conversation's calls: the server's own if they are kept,
// else ours.
func (m *Model) callIDs(req *model.Request) func(i int, call string) string {
	id := model.CallIDs(req.Messages)
	if !m.with.KeepCallIDs && !kimi.MatchString(req.Model) {
		return id
	}
	// Ids of other providers mean nothing to this server.
	theirs := model.ProviderIDs(req.Messages, func(msg agent.Message) bool { return model.ProviderOf(msg.ModelName()) == m.name }, func(given string) bool {
		return given != "" && !ours.MatchString(given)
	})
	return func(i int, call string) string { return cmp.Or(theirs[id(i, call)], id(i, call)) }
}
