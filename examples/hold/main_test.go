package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHold(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, hold(t.Context(), &out))
	for _, want := range []string{
		`Run pay? It costs money. {"eur":800,"number":118}`, "suspended: the auditor rings", "# Handoff of payer: stopped", "> Invoice 118 is paid.",
	} {
		require.Contains(t, out.String(), want)
	}
}
