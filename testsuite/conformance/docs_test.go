package conformance_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite/conformance"
)

func TestTin(t *testing.T) { conformance.Model(t, tinProvider, tinOptions) }

func TestMemory(t *testing.T) {
	conformance.Store(t, func(*testing.T) store.Store { return newMemory() })
}

// The pages show the examples that are tested here.
func TestTheDocsShowTheExamples(t *testing.T) {
	for page, file := range map[string]string{
		"models.md": "example_model_test.go",
		"store.md":  "example_store_test.go",
		"tools.md":  "example_tool_test.go",
	} {
		text, err := os.ReadFile("../../docs/" + page)
		require.NoError(t, err)
		program, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Contains(t, string(text), "```go\n"+string(program)+"```", "docs/%s does not show %s", page, file)
	}
}
