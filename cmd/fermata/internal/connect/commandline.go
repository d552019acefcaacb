package connect

import (
	"fmt"
	"strings"
)

// CommandLine returns a command line for the same server, task queue and store.
func (c *Connector) CommandLine(format string, args ...any) string {
	line := "fermata " + fmt.Sprintf(format, args...)
	for _, g := range []struct{ flag, value string }{
		{"--address", c.Address}, {"--namespace", c.Namespace}, {"--profile", c.Profile}, {"--task-queue", c.TaskQueue}, {"--data", c.Data}, {"--store", FolderOf(c.Store)},
	} {
		if g.value != "" {
			line += " " + g.flag + " " + ShellWord(g.value)
		}
	}
	return line
}

// TemporalLine returns a line of the temporal command for this server.
func (c *Connector) TemporalLine(s *Server, line string) string {
	line = "temporal " + line
	// Only what the user's environment would not give the temporal command by itself.
	if c.Address != "" || s.Embedded != nil {
		line += " --address " + ShellWord(s.Addr)
	}
	if c.Profile != "" {
		line += " --profile " + ShellWord(c.Profile)
	}
	return line
}

// FolderOf returns a store's folder; empty for a URL, which may contain a password.
func FolderOf(store string) string {
	if strings.Contains(store, "://") {
		return ""
	}
	return store
}

// ShellWord quotes a word if a shell would split or change it.
func ShellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._:/@%+=,-", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
