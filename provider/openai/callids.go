package openai

import (
	"cmp"
	"regexp"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// kimi are the models of Moonshot, on its own servers and on others. Their templates show
// them the ids of calls, "functions.NAME:0", and with others they call tools wrongly.
var kimi = regexp.MustCompile(`(?i)(^|/)kimi-`)

// ours is the form of our own ids, which no server's may be taken for.
var ours = regexp.MustCompile(`^call\d+$`)

// callIDs names the calls of a conversation: with the server's own ids if they are to be
// kept, otherwise with ours.
func (m *Model) callIDs(req *model.Request) func(i int, call string) string {
	id := model.CallIDs(req.Messages)
	if !m.with.KeepCallIDs && !kimi.MatchString(req.Model) {
		return id
	}
	theirs := model.ProviderIDs(req.Messages, func(msg agent.Message) bool { return model.ProviderOf(msg.ModelName()) == m.name }, func(given string) bool {
		return given != "" && !ours.MatchString(given)
	})
	return func(i int, call string) string { return cmp.Or(theirs[id(i, call)], id(i, call)) }
}
