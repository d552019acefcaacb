package bedrock

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

const (
	roleUser      = "user"
	roleAssistant = "assistant"
)

// cachedTurns is how many of the user's messages are marked for the cache: the last one
// to write it, and the one before to find what the last request wrote.
const cachedTurns = 2

// noCalls is added to a request whose answer must not be a call. Converse has no setting
// for that, and the tools have to stay, because they are in the cache.
const noCalls = "Answer in words, and call no tool."

// request returns a request for the provider. files makes the blocks of its files.
func (c call) request(req *model.Request, files *shownFiles) (*request, error) {
	conversation, recital := model.SplitRecital(req.Messages)
	r := &request{Messages: c.messages(conversation, files)}
	if len(r.Messages) == 0 {
		return nil, errors.New("there is no message to answer")
	}
	if err := r.declare(req); err != nil {
		return nil, err
	}
	// Converse can't enforce a schema for all models, so the instructions say it.
	instructions := req.Instructions
	if len(req.Output) > 0 {
		instructions = model.OutputInWords(instructions, req.Output, len(req.Tools) > 0)
	}
	if !blank(instructions) {
		r.System = []block{{Text: &instructions}}
	}
	if req.NoCalls && r.Tools != nil {
		words := noCalls
		// At the end, so the beginning stays as it is in the cache.
		last := &r.Messages[len(r.Messages)-1]
		last.Content = append(last.Content, block{Text: &words})
	}
	r.settle(req)
	mark := &cachePoint{Type: "default"}
	if c.hour && strings.HasPrefix(family(req.Model), claudes) {
		mark.TTL = "1h"
	}
	r.markForCache(family(req.Model), mark)
	r.recite(recital) // behind the marks, since it changes
	if c.tier != "" {
		r.Tier = &serviceTier{c.tier}
	}
	return r, nil
}

// settle sets how to make the reply.
func (r *request) settle(req *model.Request) {
	in := inference{MaxTokens: req.MaxOutputTokens}
	// First: thinking may forbid a temperature or a limit.
	off := r.reason(req, &in)
	in.Temperature = table.Models[family(req.Model)].Temperature.Takes(req.Temperature, off)
	if r.thinksWithin() || r.thinksHardest() {
		in.Temperature = nil // Bedrock refuses both together
	}
	if in.MaxTokens > 0 || in.Temperature != nil {
		r.Inference = &in
	}
}

// declare adds the tools. If there are none but the conversation has calls, it declares
// the called ones, because the provider requires that.
func (r *request) declare(req *model.Request) error {
	list := req.Tools
	// Bedrock refuses calls in a conversation without tools.
	if len(list) == 0 {
		list = calledIn(req.Messages)
	}
	var declared []tool
	for _, t := range list {
		t = model.PlainTool(t)
		input, err := model.InputSchema(t, map[string]string{"type": `"object"`})
		if err != nil {
			return err
		}
		declared = append(declared, tool{Spec: &toolSpec{Name: t.Name, Description: t.Description, Input: inputSchema{input}}})
	}
	if len(declared) > 0 {
		r.Tools = &tools{declared}
	}
	return nil
}

// calledIn returns the tools that a conversation calls, without their schemas.
func calledIn(messages []agent.Message) []agent.ToolSpec {
	var list []agent.ToolSpec
	for _, m := range messages {
		for _, c := range m.ToolCalls() {
			if !slices.ContainsFunc(list, func(t agent.ToolSpec) bool { return t.Name == c.Tool }) {
				list = append(list, agent.ToolSpec{Name: c.Tool})
			}
		}
	}
	return list
}

// markForCache marks the part that a later request will begin with.
func (r *request) markForCache(name string, mark *cachePoint) {
	claude := strings.HasPrefix(name, claudes)
	if !claude && !strings.HasPrefix(name, novas) {
		return
	}
	switch {
	// A mark covers everything before it: the tools come before the system block.
	case len(r.System) > 0:
		r.System = append(r.System, block{CachePoint: mark})
	case claude && r.Tools != nil:
		r.Tools.Tools = append(r.Tools.Tools, tool{CachePoint: mark})
	}
	// Nova caches nothing but the instructions.
	for i, marked := len(r.Messages)-1, 0; claude && i >= 0 && marked < cachedTurns; i-- {
		if m := &r.Messages[i]; m.Role == roleUser {
			m.Content = append(m.Content, block{CachePoint: mark})
			marked++
		}
	}
}

// messages returns a conversation for the provider: turns of user and assistant. Results
// of tools are the user's and come first.
func (c call) messages(conversation []agent.Message, files *shownFiles) []message {
	var out []message
	say := func(role string, blocks []block) {
		if len(blocks) == 0 {
			return
		}
		// Bedrock requires alternating roles.
		if n := len(out); n > 0 && out[n-1].Role == role {
			out[n-1].Content = append(out[n-1].Content, blocks...)
			return
		}
		out = append(out, message{Role: role, Content: blocks})
	}
	id, asked := model.CallIDs(conversation), lastAsked(conversation)
	for i, msg := range conversation {
		named := func(call string) string { return id(i, call) }
		if msg.Role == agent.RoleAssistant {
			say(roleAssistant, assistantBlocks(msg, named, i > asked && model.ProviderOf(msg.ModelName()) == c.name))
		} else {
			say(roleUser, userBlocks(msg, files, named))
		}
	}
	for i, m := range out {
		if m.Role == roleUser {
			// Stable, so the rest keeps its order.
			slices.SortStableFunc(m.Content, func(a, b block) int { return rank(a) - rank(b) })
			out[i] = withWords(m)
		}
	}
	return out
}

// recite adds what a request says by itself to the end of the conversation.
func (r *request) recite(recital []agent.Message) {
	for _, msg := range recital {
		text := msg.Text()
		if last := &r.Messages[len(r.Messages)-1]; last.Role == roleUser {
			last.Content = append(last.Content, block{Text: &text})
			continue
		}
		r.Messages = append(r.Messages, message{Role: roleUser, Content: []block{{Text: &text}}})
	}
}

// rank orders results of tools before everything else, as the provider requires.
func rank(b block) int {
	if b.Result != nil {
		return 0
	}
	return 1
}

// lastAsked returns the index of the last message in which the user says something; -1 if
// there is none.
func lastAsked(in []agent.Message) int {
	for i, msg := range slices.Backward(in) {
		if msg.Role == agent.RoleUser && (!blank(msg.Text()) || len(msg.Files()) > 0) {
			return i
		}
	}
	return -1
}

func userBlocks(msg agent.Message, files *shownFiles, id func(call string) string) []block {
	var blocks []block
	for _, p := range msg.Parts {
		switch {
		case p.Type == agent.PartText && !blank(p.Text):
			blocks = append(blocks, block{Text: &p.Text})
		case p.Type == agent.PartFile && p.File != nil:
			blocks = append(blocks, files.block(p.File))
		case p.Type == agent.PartToolResult && p.Result != nil:
			blocks = append(blocks, resultBlock(p.Result, id(p.Result.Call)))
		}
	}
	return blocks
}

// Texts for results without words, which the provider refuses.
const (
	wordless     = "The call failed and says nothing of why."
	wordlessDone = "(done, without output)"
)

// resultBlock returns a tool's result. If its call is missing, it returns a text, because
// the provider refuses such results.
func resultBlock(r *agent.ToolResult, id string) block {
	if id == "" {
		text := fmt.Sprintf("Result of %s: %s", r.Tool, r.Text)
		return block{Text: &text}
	}
	text, status := r.Text, ""
	if r.Status != agent.CallOK {
		status = "error"
	}
	switch {
	case !blank(text):
	case status != "":
		text = wordless
	default:
		text = wordlessDone
	}
	return block{Result: &toolResult{ID: id, Content: []resultText{{text}}, Status: status}}
}

// assistantBlocks returns a message of the model, with its thinking if thought is true.
// Thinking after a call is left out, because the call has another id than before, and so
// is thinking that nothing follows.
func assistantBlocks(msg agent.Message, id func(call string) string, thought bool) []block {
	var blocks, thinking []block
	for _, p := range msg.Parts {
		switch {
		case p.Type == agent.PartThinking && thought && p.Redacted != "":
			thinking = append(thinking, block{Reasoning: &reasoning{Redacted: p.Redacted}})
		case p.Type == agent.PartThinking && thought && p.Signature != "":
			thinking = append(thinking, block{Reasoning: &reasoning{Text: &reasoningText{p.Text, p.Signature}}})
		case p.Type == agent.PartText && !blank(p.Text):
			// Thinking belongs before the part that it led to.
			blocks = append(append(blocks, thinking...), block{Text: &p.Text})
			thinking = nil
		case p.Type == agent.PartToolCall && p.Call != nil:
			use := block{Use: &toolUse{ID: id(p.Call.ID), Name: p.Call.Tool, Input: arguments(p.Call)}}
			blocks = append(append(blocks, thinking...), use)
			// Later thinking was signed with the provider's id of the call, which is not sent.
			thinking, thought = nil, false
		}
	}
	return blocks
}

// arguments returns a call's arguments if they are an object, which the provider
// requires; else an empty object.
func arguments(c *agent.ToolCall) json.RawMessage {
	var object map[string]json.RawMessage
	if c.Malformed != "" || json.Unmarshal(c.Arguments, &object) != nil || object == nil {
		return json.RawMessage(`{}`)
	}
	return c.Arguments
}

// blank reports whether a text is empty: the provider refuses such texts.
func blank(s string) bool { return strings.TrimSpace(s) == "" }
