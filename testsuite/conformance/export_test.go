package conformance

import (
	"slices"
	"testing"
	"time"

	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/tool"
)

// ModelFault runs one part of [Model] against an adapter and returns its first failure;
// empty if the adapter passes.
func ModelFault(t *testing.T, name string, p Provider, o *ModelOptions) string {
	t.Helper()
	a := newAdapter(p, o)
	a.patience = time.Second
	i := slices.IndexFunc(modelParts, func(part modelPart) bool { return part.name == name })
	return testenv.FailureOf(t, func(t testing.TB) { modelParts[i].run(t, a) })
}

// ToolFault does this with a part of [Tool].
func ToolFault(t *testing.T, name string, tl tool.Tool, o *ToolOptions) string {
	t.Helper()
	i := slices.IndexFunc(toolParts, func(part toolPart) bool { return part.name == name })
	return testenv.FailureOf(t, func(t testing.TB) { toolParts[i].check(t, newToolCase(tl, o)) })
}

// SourceFault does this with a part of [Source].
func SourceFault(t *testing.T, name string, s tool.Source) string {
	t.Helper()
	i := slices.IndexFunc(sourceParts, func(part sourcePart) bool { return part.name == name })
	return testenv.FailureOf(t, func(t testing.TB) { sourceParts[i].check(t, s) })
}

// StoreFault does this with a part of [Store].
func StoreFault(t *testing.T, name string, s store.Store) string {
	t.Helper()
	i := slices.IndexFunc(storeParts, func(part storePart) bool { return part.name == name })
	return testenv.FailureOf(t, func(t testing.TB) { storeParts[i].check(t, s) })
}
