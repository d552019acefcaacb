package conformance

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/tool"
)

// ToolOptions says what [Tool] needs to know of a tool. Nil and the zero value suit a tool
// that is quick and needs no arguments.
type ToolOptions struct {
	// Arguments are the JSON of a call that always succeeds; empty means "{}". The suite
	// calls the tool with variants too, right and wrong, so use a fake backend.
	Arguments string
	// Slow are the JSON of a call that runs until its context ends. If it is empty, no
	// part checks that a running call ends with its context.
	Slow string
	// Effects counts what the tool has changed up to now: one for each call that
	// succeeds or, with Attempts, for each key. If it is nil, effects are not checked.
	Effects func() int
	// Secrets are what no result, error or progress may contain, such as the tool's key.
	Secrets []string
}

// Tool tests a tool. A model can understand it. It refuses arguments that do not fit its
// schema. It ends with its context. A repeated call has one effect if the tool has
// Attempts. It reveals no secret.
func Tool(t *testing.T, tl tool.Tool, o *ToolOptions) {
	t.Helper()
	require.NoError(t, tl.Err(), "a worker does not start with this tool")
	checkTool(t, newToolCase(tl, o))
}

// SourceOptions says what [Source] needs to know of a source. Nil means that no tool is
// called.
type SourceOptions struct {
	// Tools are the tools to call, by full name. All others are only inspected.
	Tools map[string]ToolOptions
}

// Source tests a source against the contract of [tool.Source], and its tools as [Tool] does.
func Source(t *testing.T, s tool.Source, o *SourceOptions) {
	t.Helper()
	if o == nil {
		o = &SourceOptions{}
	}
	for _, part := range sourceParts {
		t.Run(part.name, func(t *testing.T) { part.check(t, s) })
	}
	specs, err := s.List(t.Context())
	require.NoError(t, err)
	for name, of := range o.Tools {
		i := slices.IndexFunc(specs, func(spec agent.ToolSpec) bool { return spec.Name == name })
		require.GreaterOrEqual(t, i, 0, "the source does not list %s", name)
		t.Run(name, func(t *testing.T) { checkTool(t, toolCase{spec: specs[i], call: s.Call, o: of}) })
	}
}

// toolCase is a tool, alone or of a source.
type toolCase struct {
	spec agent.ToolSpec
	call func(context.Context, *tool.Call) (string, error)
	o    ToolOptions
	// strict means that wrong arguments are refused before anything is done, and not only
	// by a server.
	strict bool
}

func newToolCase(tl tool.Tool, o *ToolOptions) toolCase {
	d := toolCase{spec: tl.Spec(), call: tl.Call, strict: true}
	if o != nil {
		d.o = *o
	}
	return d
}

func checkTool(t *testing.T, d toolCase) {
	t.Helper()
	for _, part := range toolParts {
		if part.lacking == nil || !part.lacking(d) {
			t.Run(part.name, func(t *testing.T) { part.check(t, d) })
		}
	}
}

// toolPart is a rule for tools, and its check.
type toolPart struct {
	name    string
	check   func(testing.TB, toolCase)
	lacking func(toolCase) bool // reports whether the rule does not apply to the tool
}

var toolParts = []toolPart{
	{"a model can understand it", isUnderstandable, nil},
	{"a call has a result that a model can read", resultCanBeRead, nil},
	{"arguments that do not fit are refused", misfitsAreRefused, nil},
	{"strange arguments do no harm", strangeIsHarmless, nil},
	{"the end of the context ends a call", endEndsCall, nil},
	{"a call that is made again has its effect once", effectIsOnce, func(d toolCase) bool { return d.o.Effects == nil || d.spec.ReadOnly || d.spec.Attempts < 2 }},
	{"a tool that only reads has no effect", readingHasNoEffect, func(d toolCase) bool { return d.o.Effects == nil || !d.spec.ReadOnly }},
	{"many calls at once work", manyCallsWork, nil},
}

// sourcePart is a rule for sources, and its check.
type sourcePart struct {
	name  string
	check func(testing.TB, tool.Source)
}

var sourceParts = []sourcePart{
	{"the tools of a source have its name", toolsHaveItsName},
	{"a list is the same as long as the tools are", listIsStable},
	{"a tool that is not there is an error", unknownIsAnError},
	{"the end of the context ends a list", endEndsList},
}

func toolsHaveItsName(t testing.TB, s tool.Source) {
	require.NoError(t, agent.CheckTool(s.Name()), "the names of the tools start with the source's name")
	require.NotContains(t, s.Name(), tool.Separator, "the source's name could not be told from the tool's")
	specs, err := s.List(t.Context())
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, spec := range specs {
		require.True(t, strings.HasPrefix(spec.Name, s.Name()+tool.Separator), "%s does not start with %s: it would never be called", spec.Name, s.Name()+tool.Separator)
		require.False(t, seen[spec.Name], "%s is listed twice: providers refuse that", spec.Name)
		seen[spec.Name] = true
		isUnderstandable(t, toolCase{spec: spec, call: s.Call})
	}
}

func listIsStable(t testing.TB, s tool.Source) {
	first, err := s.List(t.Context())
	require.NoError(t, err)
	again, err := s.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, first, again, "a list in another order misses the provider's cache in every run")
}

func unknownIsAnError(t testing.TB, s tool.Source) {
	for _, name := range []string{s.Name() + tool.Separator + "no_such_tool", "another" + tool.Separator + "tool", "tool"} {
		d := toolCase{spec: agent.ToolSpec{Name: name}, call: s.Call}
		_, err := d.do(t, t.Context(), "the tool "+name, "{}", "r/t1.1")
		require.Error(t, err, "%s was called, but it does not exist", name)
	}
}

func endEndsList(t testing.TB, s tool.Source) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var err error
	endsSoon(t, "a list with an ended context", func() { _, err = s.List(ctx) })
	require.Error(t, err, "a list with an ended context")
}
