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

// ToolOptions says what there is to know of a tool; nil, and the zero value, are
// for one that is quick and needs no arguments.
type ToolOptions struct {
	// Arguments are the JSON of a call that succeeds, however often it is made.
	// Empty means "{}". The suite makes others of them, right and wrong: what is
	// behind the tool must bear these.
	Arguments string
	// Slow are the JSON of a call that goes on until its context ends; empty if
	// there is none, and then nothing reports whether calls end with their contexts.
	Slow string
	// Effects counts what the tool has done to the world up to now: one more for each
	// call that succeeds, or for each key of a tool with Attempts. Nil if that can't
	// be counted.
	Effects func() int
	// Secrets are what the tool knows and nobody may read, such as its key.
	Secrets []string
}

// Tool checks that a tool is one that the runtime can call: that it can be
// described to a model, holds to its schema, ends with its context, has its effect
// once where it says that it may be called again, and tells no secret.
func Tool(t *testing.T, tl tool.Tool, o *ToolOptions) {
	t.Helper()
	require.NoError(t, tl.Err(), "a worker does not start with this tool")
	checkTool(t, newToolCase(tl, o))
}

// SourceOptions says what there is to know of a source.
type SourceOptions struct {
	// Tools are those that are called, by their full names.
	Tools map[string]ToolOptions
}

// Source checks that a source keeps the contract of [tool.Source], and its tools
// that of [Tool].
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

// toolCase is a tool, whoever has it.
type toolCase struct {
	spec agent.ToolSpec
	call func(context.Context, *tool.Call) (string, error)
	o    ToolOptions
	// strict tells that wrong arguments are refused before anything is done, and
	// not by somebody far away.
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

// toolPart is a sentence about tools, and the check of it.
type toolPart struct {
	name    string
	check   func(testing.TB, toolCase)
	lacking func(toolCase) bool // tells that the sentence is not about this tool
}

var toolParts = []toolPart{
	{"a model can be told of it", canBeTold, nil},
	{"a call has a result that a model can read", resultCanBeRead, nil},
	{"arguments that do not fit are refused", misfitsAreRefused, nil},
	{"strange arguments are borne", strangeIsBorne, nil},
	{"the end of the context ends a call", endEndsCall, nil},
	{"a call that is made again has its effect once", effectIsOnce, func(d toolCase) bool { return d.o.Effects == nil || d.spec.ReadOnly || d.spec.Attempts < 2 }},
	{"a tool that only reads has no effect", readingHasNoEffect, func(d toolCase) bool { return d.o.Effects == nil || !d.spec.ReadOnly }},
	{"many calls at once are borne", manyAreBorne, nil},
}

// sourcePart is a sentence about sources, and the check of it.
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
	require.NoError(t, agent.CheckTool(s.Name()), "the source's name begins the names of its tools")
	require.NotContains(t, s.Name(), tool.Separator, "nobody could tell the source's name from the tool's")
	specs, err := s.List(t.Context())
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, spec := range specs {
		require.True(t, strings.HasPrefix(spec.Name, s.Name()+tool.Separator), "%s does not begin with %s: nobody calls it", spec.Name, s.Name()+tool.Separator)
		require.False(t, seen[spec.Name], "%s is listed twice: providers refuse that", spec.Name)
		seen[spec.Name] = true
		canBeTold(t, toolCase{spec: spec, call: s.Call})
	}
}

func listIsStable(t testing.TB, s tool.Source) {
	first, err := s.List(t.Context())
	require.NoError(t, err)
	again, err := s.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, first, again, "a list in another order costs the provider's cache with every run")
}

func unknownIsAnError(t testing.TB, s tool.Source) {
	for _, name := range []string{s.Name() + tool.Separator + "no_such_tool", "another" + tool.Separator + "tool", "tool"} {
		d := toolCase{spec: agent.ToolSpec{Name: name}, call: s.Call}
		_, err := d.do(t, t.Context(), "the tool "+name, "{}", "r/t1.1")
		require.Error(t, err, "%s was called, and nobody has it", name)
	}
}

func endEndsList(t testing.TB, s tool.Source) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var err error
	endsSoon(t, "a list that nobody waits for", func() { _, err = s.List(ctx) })
	require.Error(t, err, "a list of a context that has ended")
}
