package render

import (
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// said returns what a message says to people: its text, and which files it shows.
func said(m *agent.Message) string {
	text := m.Text()
	for _, f := range m.Files() {
		text += " [" + f.String() + "]"
	}
	return strings.TrimSpace(text)
}
