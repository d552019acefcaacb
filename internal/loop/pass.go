package loop

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// A run passes files on by reference. Its model, or a flow's function, names files of the
// conversation in the arguments of a call. The activity that has the log resolves the names, since
// the workflow has no log, and its answer brings the files beside the call. The run that gets them
// copies their bytes into its own session before its first turn (Opened.Parts). With an order to a child
// that has begun, the parent copies them before it sends the order.

// MaxPassed is how many bytes the files have together at most that are copied at once.
const MaxPassed = 64 << 20

// filesProperty is how the tools that pass files take them.
const filesProperty = `"files":{"type":"array","items":{"type":"string"},"description":"Files of this conversation that the agent gets: by name, as name#digits"}`

// PassesFiles reports whether a tool takes the names of files that it passes on.
func PassesFiles(t agent.ToolSpec) bool {
	return t.Executor == agent.ExecutorSubAgent || t.Executor == agent.ExecutorRuntime && t.Name == resumeTool
}

// NamedFiles returns the names of the files that a call passes on; none if the arguments do not fit.
func NamedFiles(arguments json.RawMessage) []string {
	var in struct {
		Files []string `json:"files"`
	}
	if json.Unmarshal(arguments, &in) != nil {
		return nil
	}
	return in.Files
}

// filesToPass returns the files that a call passes on: one for each name in its arguments, in their
// order. refused says to the model why it may not. Whoever has asked the model, only files of the run's
// own session are taken.
func (s *step) filesToPass(c Call, names []string) (files []agent.File, refused string) {
	if len(names) > agent.MaxFiles {
		return nil, fmt.Sprintf("Not done: %d files are named, and an agent gets %d at most.", len(names), agent.MaxFiles)
	}
	size := 0
	for i, name := range names {
		if i >= len(c.Files) || c.Files[i].Session != s.Session || c.Files[i].Check() != nil {
			return nil, fmt.Sprintf("Not done: the file %q is not this session's.", fit(name, maxName))
		}
		f := c.Files[i]
		if !slices.ContainsFunc(files, func(one agent.File) bool { return one.Digest == f.Digest }) {
			files, size = append(files, f), size+f.Size
		}
	}
	if size > MaxPassed {
		return nil, fmt.Sprintf("Not done: the files have %d bytes together, and an agent gets %d at most.", size, MaxPassed)
	}
	return files, ""
}

// returned returns the files that the outcome gives back: those of the run's own session, whoever has
// asked the model.
func (s *step) returned(files []agent.File) (own []agent.File) {
	for _, f := range files {
		if f.Session == s.Session && f.Check() == nil && len(own) < agent.MaxFiles {
			own = append(own, f)
		}
	}
	return own
}

// fileParts returns files as parts of a message.
func fileParts(files []agent.File) (parts []agent.Part) {
	for _, f := range files {
		parts = append(parts, agent.Part{Type: agent.PartFile, File: &f})
	}
	return parts
}

// filesIn returns the files of parts.
func filesIn(parts []agent.Part) (files []agent.File) {
	for _, p := range parts {
		if p.File != nil {
			files = append(files, *p.File)
		}
	}
	return files
}

// Files returns the files that children have given back and no result shows yet.
func (c Children) Files() (files []*agent.File) {
	for _, one := range c.List {
		if one.Outcome != nil {
			files = append(files, agent.Message{Parts: fileParts(one.Outcome.Files)}.Files()...)
		}
	}
	return files
}

// filesJSONLen returns how long files are in JSON at most.
func filesJSONLen(files []agent.File) int { return partsJSONLen(fileParts(files)) }

// mayStartWith returns an error for a start with files that are neither the session's own nor, for a
// run that another run has started, the parent's. from is the parent's session as Temporal knows it.
func (s *step) mayStartWith(parts []agent.Part, from string) *agent.Error {
	if from == "" || s.Parent.Start == nil || s.Parent.Start.Parent.Session != from || !strings.HasPrefix(s.Session, from+"/") {
		return ownFiles(s.Session, "input.parts", parts)
	}
	return ownFiles(from, "input.parts", parts)
}

// FilesOfParent returns the parts of the start with files of the parent's session, and that session.
func (s *State) FilesOfParent() (from string, parts []agent.Part) {
	if s.Parent.Start == nil || s.Origin.Start == nil {
		return "", nil
	}
	from = s.Parent.Start.Parent.Session
	for _, p := range s.Origin.Start.Input.Parts {
		if p.File != nil && p.File.Session == from {
			parts = append(parts, p)
		}
	}
	return from, parts
}

// shownWith returns the parts of an order that this run can show: an order is not refused for its files.
func (s *step) shownWith(parts []agent.Part) (shown []agent.Part) {
	for _, p := range parts[:min(len(parts), agent.MaxFiles)] {
		switch {
		case p.File == nil && p.Type == agent.PartText && p.Text != "":
			shown = append(shown, agent.Part{Type: agent.PartText, Text: fit(p.Text, maxWhy)})
		case p.File != nil && p.File.Check() == nil:
			shown = append(shown, agent.Part{Type: agent.PartFile, File: p.File})
		}
	}
	if s.isFlow() || s.mayShow(shown) != nil {
		return nil
	}
	return shown
}

// TakesFilesOfChildren reports whether a child's end may wait for copies of the files that it gives
// back. In a run that stops or ends nobody sees them.
func (s *State) TakesFilesOfChildren() bool { return s.End.Stopping == nil && s.End.Outcome == nil }
