package testsuite

import (
	"maps"
	"slices"

	"github.com/fermata-agents/fermata/agent"
)

// scriptFiles are what the usual models read, also within a tool's result.
var (
	scriptFiles       = map[string]int{"image/png": agent.MaxFile, "image/jpeg": agent.MaxFile, "image/gif": agent.MaxFile, "image/webp": agent.MaxFile, "application/pdf": agent.MaxFile}
	scriptResultFiles = slices.Sorted(maps.Keys(scriptFiles))
)
