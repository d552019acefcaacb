package activities

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// Migration converts a session's state from one version to another.
type Migration struct {
	From, To int
	// Migrate returns the state in the version To. It must not keep or change its
	// argument.
	Migrate func(state map[string]json.RawMessage) (map[string]json.RawMessage, error)
}

// migrate converts a state along the shortest chain of migrations. It returns nil if
// there is nothing to do: an empty state has every version.
func (d *Activities) migrate(state map[string]json.RawMessage, from, to int) (*agent.Migrated, error) {
	if from == to || len(state) == 0 {
		return nil, nil
	}
	chain, err := chainOf(d.Migrations, from, to)
	if err != nil {
		return nil, err
	}
	for _, m := range chain {
		if state, err = m.Migrate(maps.Clone(state)); err != nil {
			return nil, agent.Errorf(agent.CodeMigrationFailed, "migrating the session's state from version %d to %d: %w", m.From, m.To, err)
		}
	}
	return &agent.Migrated{From: from, To: to, State: state}, nil
}

// chainOf returns the shortest chain of migrations. Two shortest chains are an error:
// nobody could say which is meant.
func chainOf(all []Migration, from, to int) ([]Migration, error) {
	// found has all shortest chains to each version. A version that is found is not
	// extended again, so a cycle ends.
	found := map[int][][]Migration{from: {nil}}
	for steps := 0; len(found[to]) == 0 && steps < len(all); steps++ {
		next := map[int][][]Migration{}
		for _, at := range slices.Sorted(maps.Keys(found)) {
			for _, m := range all {
				if _, seen := found[m.To]; m.From != at || seen || len(longest(found[at])) != steps {
					continue
				}
				for _, chain := range found[at] {
					next[m.To] = append(next[m.To], append(slices.Clip(chain), m))
				}
			}
		}
		maps.Copy(found, next)
	}
	switch chains := found[to]; len(chains) {
	case 0:
		return nil, agent.Errorf(agent.CodeMigrationMissing, "the session's state has version %d and the agent needs %d: no chain of migrations leads there; registered are %s", from, to, describe(all))
	case 1:
		return chains[0], nil
	}
	return nil, agent.Errorf(agent.CodeMigrationAmbiguous, "several chains of migrations, equally short, lead from version %d of the session's state to %d; registered are %s", from, to, describe(all))
}

func longest(chains [][]Migration) []Migration { return chains[len(chains)-1] }

func describe(all []Migration) string {
	var steps []string
	for _, m := range all {
		steps = append(steps, fmt.Sprintf("%d→%d", m.From, m.To))
	}
	if len(steps) == 0 {
		return "none"
	}
	return strings.Join(steps, ", ")
}
