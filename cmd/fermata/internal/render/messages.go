package render

import (
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

// Messages prints a conversation, as text or one message as JSON a line.
func (s *Streams) Messages(messages []agent.Message) {
	for i, m := range messages {
		if s.JSON {
			s.Line(m)
			continue
		}
		if i > 0 {
			s.Print("")
		}
		s.Print("%s", Message(m))
	}
}

// Message returns a message for people. The message's own text has a margin.
func Message(m agent.Message) untrusted.Block {
	who := string(m.Role)
	switch {
	case m.Note != "":
		who = "runtime (" + string(m.Note) + ")"
	case m.Model != "":
		who += " (" + untrusted.Name(m.Model) + ")"
	case m.By != "":
		who += " (" + untrusted.Cut(untrusted.Name(m.By), 60) + ")"
	}
	lines := []string{untrusted.Sprintf("== %s", who)}
	say := func(format string, args ...any) { lines = append(lines, untrusted.Sprintf(format, args...)) }
	file := func(p agent.Part) {
		if p.File != nil { // a log that was imported may have anything
			say("[file] %s\n%s", untrusted.Line(p.File.String(), 400), untrusted.Margin(p.Text))
		}
	}
	for _, p := range m.Parts {
		switch {
		case p.Type == agent.PartThinking:
			// Unlike the reply's text it was not addressed to anybody, so it has a title.
			say("[thinking]\n%s", untrusted.Margin(p.Text))
		case p.Type == agent.PartServerTool:
			say("[server tool]\n%s", untrusted.Margin(p.Text))
		case p.File != nil:
			file(p)
		case p.Text != "":
			say("%s", untrusted.Margin(p.Text))
		case p.Call != nil:
			say("[call %s] %s\n%s", untrusted.Name(p.Call.ID), untrusted.Name(p.Call.Tool), calledWith(*p.Call))
		case p.Result != nil:
			say("[result %s, %s]\n%s", untrusted.Name(p.Result.Call), came(*p.Result), untrusted.Margin(p.Result.Text))
			for _, f := range p.Result.Files {
				file(f)
			}
		}
	}
	lines = append(lines, citationsOf(&m)...)
	return untrusted.Block(strings.Join(lines, "\n"))
}

// calledWith returns all of a call's arguments.
func calledWith(c agent.ToolCall) untrusted.Block {
	// Arguments that are not JSON are shown as the model wrote them.
	if c.Malformed != "" {
		return untrusted.Margin(c.Malformed)
	}
	return untrusted.MarginOf(untrusted.JSON(c.Arguments))
}
