package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite"
)

// What an answer cites follows it in every command that shows it; what names a source is from
// outside.
func TestCitationsAreShown(t *testing.T) {
	s := scripted(t, role{agent.Definition{Name: "reader"}, []testsuite.Reply{{Text: "Rome is sunny.", Citations: []agent.Citation{
		{End: 4, URL: "https://a.example/rom", Title: "Röm\n\x1b[2J"}, {End: 4, URL: "javascript:x"},
	}}}}).works()
	id := s.session("a")
	const shown = "│ Rome is sunny.\n[source] Röm \\u001b[2J, https://a.example/rom, for \"Rome\"\n"
	r := s.run("run", "reader", "How is Rome?", "--session", id)
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.out, shown+"[source] 1 more\n")
	require.Contains(t, s.run("transcript", id).out, shown+"[source] 1 more\n")
	require.Contains(t, s.run("show", id).out, shown)
}
