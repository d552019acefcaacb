package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/tool"
)

// The keys of the row persist_state: the agent names only the first one.
const (
	namedKey   tool.Key[int] = "named"
	scratchKey tool.Key[int] = "scratch"
)

// stateRows are those of what tools keep in the session. Forks can be of a run's scratch, and later runs
// find only what the agent names.
func stateRows() []policyRow {
	find := call("find", nil)
	return []policyRow{
		{ // its worker is killed, and it is interrupted, between the setting and the end; it finds both keys then
			name: "persist_state", at: "turn 3", before: 1, after: 2, in: inBoth,
			kept: func(r model.Request, _ policyEnd) bool {
				if strings.HasSuffix(r.Call.Session, columnBefore) {
					return finds(0, 0)(r)
				}
				return finds(1, 2)(r)
			},
			next:    finds(1, 0),
			def:     agent.Definition{Tools: []string{"pay", "keep", "find"}, PersistState: []string{string(namedKey)}},
			replies: append(turns("done", call("pay", nil), call("keep", nil), find), turns("again", find)...),
			end:     completes(policyEnd{}),
		},
	}
}

// finds reports whether the last call of find found these values; zero means that a key had none.
func finds(named, scratch int) func(model.Request) bool {
	return func(r model.Request) bool {
		results := resultsIn(r)
		return len(results) > 0 && results[len(results)-1] == stateText(named, scratch)
	}
}

func stateText(named, scratch int) string {
	return fmt.Sprintf("named %d, scratch %d", named, scratch)
}

// stateTools set and find both keys.
func stateTools() []tool.Tool {
	keep := func(_ context.Context, c *tool.Call, _ struct{}) (string, error) {
		return "kept", errors.Join(namedKey.Set(c, 1), scratchKey.Set(c, 2))
	}
	find := func(ctx context.Context, c *tool.Call, _ struct{}) (string, error) {
		named, _, err := namedKey.Get(ctx, c)
		scratch, _, errs := scratchKey.Get(ctx, c)
		return stateText(named, scratch), errors.Join(err, errs)
	}
	return []tool.Tool{tool.New("keep", "keeps values", keep, nil), tool.New("find", "finds values", find, readOnly)}
}
