package main

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// Doctor finds what would fail a run that has not begun yet.
func TestDoctorLooksAtProgramsAndWorkers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.write("fermata.yaml", "agents:\n  a: {model: \"script:s.yaml\", tools: [\"mcp:gone\", \"mcp:here\", \"mcp:may\"]}\nmcp:\n  gone: {command: [no-such-program-at-all]}\n"+
		"  here: {command: [\"true\"]}\n  may: {command: [no-such-program-either], optional: true}\n  spare: {command: [sh]}\n  lost: {command: [none-such]}\n")
	b.write("s.yaml", "replies: [{text: Hello.}]\n")
	r := b.run("doctor")
	require.NotZero(t, r.exit)
	require.Contains(t, r.out, "FAIL mcp         the MCP server gone can't be started (no-such-program-at-all): ")
	require.Contains(t, r.out, "warn mcp         the MCP server may can't be started (no-such-program-either): ")
	require.Contains(t, r.out, "-    mcp         spare: sh is there, and no agent uses it")
	require.Contains(t, r.out, "warn mcp         lost: the command none-such can't be started, and no agent uses it")
	for _, name := range []string{"gone", "here", "may", "spare", "lost"} {
		require.Len(t, regexp.MustCompile(`(?m)^\S+ +mcp .*\b`+name+`\b`).FindAllString(r.out, -1), 1, "one verdict for %s:\n%s", name, r.out)
	}
	require.Regexp(t, `(?m)^FAIL mcp .*\bhere\b`, r.out)

	b.write("fermata.yaml", "agents:\n  a: {model: \"script:s.yaml\"}\n")
	d := b.start("dev", "--agents", b.dir+"/none.yaml", "--addr", b.addr)
	require.NotZero(t, d.wait().exit)
	dev := b.elsewhere().start("dev", "--addr", b.addr)
	dev.until("ready")
	r = b.run("doctor")
	require.Contains(t, r.out, "warn worker      none at task queue fermata: runs wait until one polls")
}

// A model's server that does not answer is no ok.
func TestDoctorAsksServersOfModels(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.write("fermata.yaml", "agents:\n  a: {model: gone}\nmodels:\n  gone: {provider: openai, model: m, base_url: \"http://127.0.0.1:1/v1\"}\n")
	r := b.run("doctor")
	require.NotZero(t, r.exit)
	require.Contains(t, r.out, "FAIL model       gone: nothing answers at http://127.0.0.1:1/v1: dial tcp 127.0.0.1:1: connect: connection refused\n")
	require.Contains(t, r.out, "-> start the server, or correct base_url of models.gone")
}
