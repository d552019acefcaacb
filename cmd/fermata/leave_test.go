package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
)

// Who leaves a run that Ctrl-C holds is told that it is held, and not that it goes on.
func TestLeavingTellsWhatIsSo(t *testing.T) {
	leave := func(do func(*conversation)) string {
		var out, errs bytes.Buffer
		v := &conversation{runner: &runner{cli: newCLI(strings.NewReader(""), &out, &errs), server: &connect.Server{}, run: &fermata.Run{Session: "s-1"}}}
		do(v)
		return errs.String()
	}
	held := func(v *conversation) { v.holding = true; v.leave() }
	require.Equal(t, "left; the run stays held: continue it with fermata resume s-1\n", leave(held))
	require.Contains(t, leave(func(v *conversation) { v.leave() }), "it continues by itself")
	over, end := context.WithCancel(t.Context())
	end()
	terminated := func(v *conversation) { v.holding = true; require.Equal(t, exitInterrupted, v.left(over, over.Err())) }
	require.Equal(t, "interrupted; the run stays held: continue it with fermata resume s-1\n", leave(terminated), "SIGTERM")
}
