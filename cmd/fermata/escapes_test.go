package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What a model's server says in an error, or a model in a text, steers no terminal.
func TestNothingSteersTheTerminal(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.write("fermata.yaml", "agents:\n  fails: {model: \"script:f.yaml\"}\n  asks: {model: \"script:s.yaml\", tools: [ask_user]}\n")
	b.write("f.yaml", "replies:\n  - {fail: [{kind: bad_request, message: \"no \\e]0;title\\a\\e[2J\\u009B31m\\u202Eevil\\u200F\"}]}\n")
	b.write("s.yaml", "replies:\n  - {text: \"first \\e[2J\\u061C\", calls: [{tool: ask_user, arguments: {question: \"Which \\e[31mone?\"}}]}\n")
	dev := b.start("dev", "--agents", "fermata.yaml")
	dev.until("ready")
	steers := "[\x00-\x08\x0b-\x1f\x7f\u0080-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
	for session, args := range map[string][]string{
		"f-1": {"run", "fails", "go", "--session", "f-1"},
		"s-1": {"run", "asks", "go", "--session", "s-1"},
	} {
		first := b.run(args...)
		require.Contains(t, []int{1, 3}, first.exit, first.err)
		all := first.out + first.err
		if session == "s-1" {
			b.run("stop", session)
		}
		for _, args := range [][]string{{"show"}, {"wait"}, {"events"}, {"transcript"}, {"handoff", "--md"}} {
			said := b.run(append(args, session)...)
			all += said.out + said.err
		}
		require.NotRegexp(t, steers, all, session)
	}
	log := dev.end(15).err
	require.Contains(t, log, "model call failed")
	require.NotRegexp(t, steers, log, "the worker's log")
}
