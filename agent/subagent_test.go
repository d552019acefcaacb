package agent

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A list that would bound nothing though it is there, and a pattern that would match nothing, are refused.
func TestBoundsThatCantBeMeant(t *testing.T) {
	for want, d := range map[string]Definition{
		"agent a: ceiling is an empty list":                       {Ceiling: []string{}},
		`agent a: ceiling[0]: "fs_[" is not a name or a pattern`:  {Ceiling: []string{"fs_["}},
		"agent a: agents[0].tools is an empty list, which bounds": {Agents: []SubAgent{{Agent: "b", Tools: []string{}}}},
	} {
		d.Name, d.Model = "a", "m"
		err := d.Check()
		require.ErrorIs(t, err, CodeInvalidInput, want)
		require.ErrorContains(t, err, want)
	}
}
