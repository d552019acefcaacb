package gemini_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/internal/standin"
)

// A model that agents know by another name is given its own thoughts back.
func TestAlias(t *testing.T) {
	for _, body := range standin.Aliased(t, at, standin.Drip(whole, 0), "gemini-3.8-flash") {
		require.Contains(t, string(body), "b2xk")
	}
}
