package client

import (
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// checkPath returns an [agent.CodeInvalidInput] error if path can't name a session or, as
// SESSION/NAME-N, a session below it.
func checkPath(path string) error {
	for part := range strings.SplitSeq(path, "/") {
		if agent.CheckSession(part) != nil {
			return agent.CheckSession(path) // its error names the whole path
		}
	}
	return nil
}
