package activities

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/internal/rawjson"
	"github.com/fermata-agents/fermata/tool"
)

// List asks a run's tool sources, such as MCP servers, for their tools. It runs once in a
// run.
var List = durable.Activity[loop.ListArgs, ListResult]{Name: "fermata.list"}

// ListResult is recorded with the Spec, so later turns see the same tools.
type ListResult struct {
	Tools []agent.ToolSpec `json:"tools"`
	// Instructions are the sources' own instructions. The model gets them after the
	// agent's.
	Instructions string `json:"instructions,omitempty"`
	// Left names what was left out of each source, without the tools.
	Left []agent.ToolsChange `json:"left,omitempty"`
}

// Limits of what a source, which is not ours, may add to a run.
const (
	maxListed       = 256       // tools of one source
	maxListedBytes  = 256 << 10 // of their schemas and descriptions
	maxInstructions = 4 << 10   // bytes of its instructions
	maxMissing      = 500       // bytes of why a source or its tools are not available
	maxLeft         = 32        // names of left-out tools that are recorded
	maxLeftName     = 64        // bytes of each
)

func (d *Activities) list(ctx context.Context, in loop.ListArgs) (ListResult, error) {
	defer heartbeat(ctx)()
	return d.ListTools(ctx, in)
}

// ListTools asks sources for their tools. It needs no activity's context.
func (d *Activities) ListTools(ctx context.Context, in loop.ListArgs) (ListResult, error) {
	var out ListResult
	ctx = tool.WithCaller(ctx, in.Session, in.Run)
	parts, errs := make([]ListResult, len(in.Sources)), make([]error, len(in.Sources))
	var all sync.WaitGroup
	// All at the same time: the run waits for the slowest source only.
	for i, name := range in.Sources {
		all.Go(func() { parts[i], errs[i] = d.listSource(ctx, name) })
	}
	all.Wait()
	for i, part := range parts {
		if errs[i] != nil {
			return ListResult{}, errs[i]
		}
		out.Tools, out.Left = append(out.Tools, part.Tools...), append(out.Left, part.Left...)
		if part.Instructions != "" {
			out.Instructions = strings.TrimPrefix(out.Instructions+"\n\n"+part.Instructions, "\n\n")
		}
	}
	return out, nil
}

// listSource asks one source. If an optional source fails, the run begins without it,
// after this one attempt.
func (d *Activities) listSource(ctx context.Context, name string) (ListResult, error) {
	source, ok := d.Sources[name]
	if !ok {
		return ListResult{}, agent.Errorf(agent.CodeUnknownTool, "tool source %q is not in this worker's build", name)
	}
	var out ListResult
	tools, words, optional, err := d.askSource(ctx, name, source)
	if err != nil {
		e := agent.Errorf(agent.CodeToolFailed, "listing the tools of %s: %w", name, err)
		e.Retryable = !errors.Is(err, agent.CodeDenied) && !errors.Is(err, agent.CodeInvalidInput)
		err = e
	} else if err = boundedTools(name, tools); err == nil {
		out, err = d.keepPinned(ctx, name, tools, words)
	}
	// If the context ended, the failure may not be the source's: the next attempt asks it
	// again.
	if err != nil && ctx.Err() == nil && optional {
		d.Logger.WarnContext(ctx, "a run begins without an optional tool source", "source", name, "error", err)
		why := errors.Unwrap(err)
		if why == nil {
			why = err
		}
		return ListResult{Instructions: "The tools of " + name + " are not available in this run: " + oneLine(why.Error(), maxMissing)}, nil
	}
	if err != nil {
		return ListResult{}, err
	}
	d.offer(out.Tools)
	return out, nil
}

// askSource asks a source for its tools and instructions. A panic of the source is an
// error.
func (d *Activities) askSource(ctx context.Context, name string, source tool.Source) (tools []agent.ToolSpec, words string, optional bool, err error) {
	defer d.caught(ctx, &err, "tool source", "source", name)
	o, ok := source.(tool.Optional)
	optional = ok && o.Optional()
	if tools, err = source.List(ctx); err == nil {
		words = InstructionsOf(source)
	}
	return tools, words, optional, err
}

// relistTime is how long a source may take to list tools that it has changed. After it,
// the model keeps the tools that it has.
const relistTime = 30 * time.Second

// relisted returns the tools of a call's source if the source says that they have
// changed.
func (d *Activities) relisted(ctx context.Context, in ToolInput) *agent.ToolsChange {
	name, _, _ := strings.Cut(in.Tool, tool.Separator)
	source, ok := d.Sources[name].(tool.Changing)
	if !ok || ctx.Err() != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(tool.WithCaller(ctx, in.Session, in.Run), relistTime)
	defer cancel()
	tools, changed, err := d.relist(ctx, name, source, in)
	if changed && err == nil {
		err = boundedTools(name, tools)
	}
	var left []string
	if changed && err == nil && d.Pins != nil {
		tools, left, err = d.pinned(ctx, name, tools, nil)
	}
	switch {
	case err != nil:
		d.Logger.WarnContext(ctx, "a source's changed tools are not taken", "session", in.Session, "run", in.Run, "source", name, "error", err)
		return nil
	case !changed:
		return nil
	}
	d.offer(tools)
	return &agent.ToolsChange{Source: name, Tools: tools, Left: left}
}

// relist asks a source whether its tools have changed. The call has been made, so a panic
// here must not become the call's result.
func (d *Activities) relist(ctx context.Context, name string, source tool.Changing, in ToolInput) (tools []agent.ToolSpec, changed bool, err error) {
	defer d.caught(ctx, &err, "tool source", "source", name)
	tools, changed = source.Relist(ctx, in.Session, in.Run)
	return tools, changed, err
}

// offer sorts tools by name and adds the worker's approvals. A source may list in any
// order, and a changed order would miss the model's prompt cache.
func (d *Activities) offer(tools []agent.ToolSpec) {
	for i, t := range tools {
		t.Temporal = nil // a source must not choose which of the namespace's activities a run calls
		tools[i] = d.ToolSpec(t)
	}
	slices.SortFunc(tools, func(a, b agent.ToolSpec) int { return strings.Compare(a.Name, b.Name) })
}

// InstructionsOf returns what a source says of its tools, as of its last List; empty if
// it says nothing.
func InstructionsOf(source tool.Source) string {
	o, ok := source.(tool.Instructed)
	if !ok {
		return ""
	}
	return strings.TrimSpace(strings.ToValidUTF8(strings.Map(printable, o.Instructions()), "\uFFFD"))
}

// keepPinned keeps the part of a source that is as it was accepted. The model and the log
// get the names of what is left out.
func (d *Activities) keepPinned(ctx context.Context, name string, tools []agent.ToolSpec, words string) (out ListResult, err error) {
	if d.Pins == nil {
		return ListResult{Tools: tools, Instructions: quotedInstructions(name, words)}, nil
	}
	kept, left, err := d.pinned(ctx, name, tools, &words)
	if err != nil {
		return out, err
	}
	out.Tools = kept
	if len(left) > 0 {
		out.Left = []agent.ToolsChange{{Source: name, Left: left}}
	}
	gone := slices.DeleteFunc(slices.Clone(left), func(n string) bool { return n == name })
	// The source's own name in left means that its instructions were left out, and no
	// tool.
	if len(gone) == len(left) {
		out.Instructions = quotedInstructions(name, words)
	}
	if len(gone) > 0 {
		told := "Tools of " + name + " that are not available in this run, since nobody has accepted their changes: " + oneLine(strings.Join(gone, ", "), maxMissing)
		out.Instructions = strings.TrimPrefix(out.Instructions+"\n\n"+told, "\n\n")
	}
	return out, nil
}

// pinned asks the pins what may be used of a source, and logs what may not, or that all
// of it is new. left has the source's own name if its instructions were left out.
func (d *Activities) pinned(ctx context.Context, name string, tools []agent.ToolSpec, words *string) (kept []agent.ToolSpec, left []string, err error) {
	held, err := d.Pins.Filter(name, tools, words)
	if err != nil {
		return nil, nil, err
	}
	if held.New {
		d.Logger.InfoContext(ctx, "a source is used for the first time, and all that it lists is accepted", "source", name, "tools", len(held.Tools))
	}
	said := false
	for _, c := range held.Changes {
		d.logChange(ctx, name, c)
		if c.Name == name {
			said = true
		} else if len(left) < maxLeft {
			left = append(left, cutAt(c.Name, maxLeftName))
		}
	}
	if said {
		left = append(left, name)
	}
	return held.Tools, left, nil
}

// logChange logs what differs from what was accepted.
func (d *Activities) logChange(ctx context.Context, source string, c tool.Change) {
	what := "a tool of a source is left out: it is not as it was accepted"
	switch {
	case c.Name == source:
		what = "the instructions of a source are left out: nobody has accepted their new text"
	case c.New:
		what = "a tool of a source is left out: it is new, and nobody has accepted it"
	}
	todo := "look at it with fermata lock"
	if agent.CheckTool(c.Name) == nil { // a name with other characters must not become part of a command to type
		todo += ", and accept it with fermata lock --accept " + c.Name + "=" + c.Digest
	}
	d.Logger.WarnContext(ctx, what, "source", source, "name", c.Name, "digest", c.Digest, "todo", todo)
}

// quotedInstructions returns a source's instructions, marked as a quotation on every
// line.
func quotedInstructions(source, words string) string {
	if words == "" {
		return ""
	}
	// Every line gets the mark, so that no line looks like the agent's own instructions.
	lines := strings.FieldsFunc(cutAt(words, maxInstructions), func(r rune) bool { return r == '\n' || r == '\r' })
	return "What " + source + " says about its tools (its own words, and no instructions from the author of the text above):\n> " + strings.Join(lines, "\n> ")
}

func oneLine(text string, most int) string {
	return cutAt(strings.Join(strings.Fields(text), " "), most)
}

func cutAt(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

func boundedTools(source string, tools []agent.ToolSpec) error {
	size := 0
	for _, t := range tools {
		size += len(t.Name) + len(t.Description) + len(t.Input)
		if rawjson.Depth(t.Input) > rawjson.MaxWrittenDepth {
			return agent.Errorf(agent.CodeTooLarge, "%s lists the tool %s, whose schema is nested more than %d levels deep", source, t.Name, rawjson.MaxWrittenDepth)
		}
	}
	if len(tools) > maxListed || size > maxListedBytes {
		return agent.Errorf(agent.CodeTooLarge, "%s lists %d tools of %d bytes; at most %d of %d bytes are taken", source, len(tools), size, maxListed, maxListedBytes)
	}
	return nil
}
