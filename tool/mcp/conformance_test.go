//go:build unix

package mcp_test

import (
	"testing"

	"github.com/fermata-agents/fermata/testsuite/conformance"
	"github.com/fermata-agents/fermata/tool/mcp"
)

func TestConformance(t *testing.T) {
	r := setup(t, "usual", mcp.Options{Env: map[string]string{"TOKEN": "s3cret-token"}})
	secrets := []string{"s3cret-token"}
	conformance.Source(t, r, &conformance.SourceOptions{Tools: map[string]conformance.ToolOptions{
		"tickets__echo": {Arguments: `{"text":"hello"}`, Secrets: secrets},
		"tickets__look": {Secrets: secrets},
	}})
}
