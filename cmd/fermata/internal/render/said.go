package render

import (
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// said returns what a message says to people: its text, and which files it shows.
func said(m *agent.Message) string {
	return strings.TrimSpace(m.Text() + filesIn(m.Parts))
}

// filesIn names the files among parts.
func filesIn(parts []agent.Part) (text string) {
	for _, p := range parts {
		if p.File != nil {
			text += " [" + p.File.String() + "]"
		}
	}
	return text
}
