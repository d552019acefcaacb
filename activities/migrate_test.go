package activities

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// step is a migration that notes where it has been.
func step(from, to int) Migration {
	return Migration{From: from, To: to, Migrate: func(state map[string]json.RawMessage) (map[string]json.RawMessage, error) {
		var trail []int
		if err := json.Unmarshal(state["trail"], &trail); err != nil {
			return nil, err
		}
		raw, err := json.Marshal(append(trail, to))
		state["trail"] = raw
		return state, err
	}}
}

// The shortest chain of migrations is taken, and each way to fail has its code
// (OA-93, OA-105).
func TestMigrate(t *testing.T) {
	failing := Migration{From: 1, To: 2, Migrate: func(map[string]json.RawMessage) (map[string]json.RawMessage, error) {
		return nil, errors.New("no such currency")
	}}
	for name, c := range map[string]struct {
		all      []Migration
		from, to int
		trail    string
		code     agent.Code
	}{
		"equal versions":         {from: 1, to: 1},
		"one step":               {all: []Migration{step(1, 2)}, from: 1, to: 2, trail: "[2]"},
		"a chain":                {all: []Migration{step(2, 3), step(1, 2)}, from: 1, to: 3, trail: "[2,3]"},
		"the shortest chain":     {all: []Migration{step(1, 2), step(2, 3), step(1, 3)}, from: 1, to: 3, trail: "[3]"},
		"back after a roll-back": {all: []Migration{step(1, 2), step(2, 1)}, from: 2, to: 1, trail: "[1]"},
		"no chain":               {all: []Migration{step(1, 2)}, from: 1, to: 3, code: agent.CodeMigrationMissing},
		"none at all":            {from: 1, to: 2, code: agent.CodeMigrationMissing},
		"two short chains":       {all: []Migration{step(1, 2), step(2, 4), step(1, 3), step(3, 4)}, from: 1, to: 4, code: agent.CodeMigrationAmbiguous},
		"one that fails":         {all: []Migration{failing}, from: 1, to: 2, code: agent.CodeMigrationFailed},
	} {
		t.Run(name, func(t *testing.T) {
			d := &Activities{Migrations: c.all}
			state := map[string]json.RawMessage{"trail": json.RawMessage("[]")}
			m, err := d.migrate(state, c.from, c.to)
			require.Equal(t, c.code, agent.CodeOf(err), "%v", err)
			require.JSONEq(t, "[]", string(state["trail"]), "what is stored stays as it is")
			if c.trail == "" {
				require.Nil(t, m)
				return
			}
			require.JSONEq(t, c.trail, string(m.State["trail"]))
			require.Equal(t, []int{c.from, c.to}, []int{m.From, m.To})
		})
	}
	m, err := (&Activities{}).migrate(nil, 1, 2)
	require.NoError(t, err)
	require.Nil(t, m, "an empty state has every version")
}
