package play

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Journal is what a run's log says of a flow's steps. The zero value has read nothing.
type Journal struct {
	// Input is the input of the run, and Began the time of its start.
	Input []byte
	Began time.Time
	// Files are the files of the input.
	Files []agent.File
	// Results are what steps came to, in the log's order, with what was sent to the run before
	// each. [Journal.Take] takes them.
	Results []Result
	// Open are the paths of the steps that were asked for and have no result, in the order of
	// asking.
	Open []string

	spec   *agent.Spec     // of the run, as it began; nil if its start has none
	now    *agent.Spec     // spec, with the tools that its sources have now
	run    string          // its id
	said   []agent.Message // since the last result
	calls  map[string]made // by id, of open steps
	before *Journal        // of the run before, until it is known whether this one forks it
	// shown are the files that the function may pass on: those of the input and of results.
	shown map[fileID]bool
	// unsettled are steps that have ended without an outcome, by path.
	unsettled map[string]made
}

// made is a step that was asked for, and the run that made it first.
type made struct {
	agent.ToolCall
	run string
	may bool // the run had the tool when the call was asked for
}

// fileID names the bytes of a file. A fork has files of another session.
type fileID struct{ session, digest string }

// Shows reports whether a file is one of the input, or of a step's result. A function may have read
// others from a text, which anybody can have written.
func (j *Journal) Shows(f agent.File) bool { return j.shown[fileID{f.Session, f.Digest}] }

// FirstRun returns the run that made a step first, if nobody knows whether it had its effect: its
// idempotency key is that run's. It is empty for other steps.
func (j *Journal) FirstRun(s Step) string { return j.firstRun(s.ToolCall) }

func (j *Journal) firstRun(c agent.ToolCall) string {
	if m := j.unsettled[c.ProviderID]; m.Tool == c.Tool && sameJSON(m.Arguments, c.Arguments) {
		return m.run
	}
	return ""
}

// Read reads the log's next events. They must be what the log's last run builds on, without what
// lies behind a checkpoint from which it has forked.
func (j *Journal) Read(events []agent.Event) {
	for _, e := range events {
		switch {
		case e.Started != nil && e.Started.HasFirstTurn():
			j.start(e)
		case e.Started != nil: // an imported run goes on with the other's turn
			j.run = e.Started.Run
		case e.Forked != nil:
			j.fork(*e.Forked)
		case e.ToolsChange != nil && j.now != nil:
			now := e.ToolsChange.ApplyTo(*j.now)
			j.now = &now
		case e.Message != nil:
			j.message(e)
		}
	}
}

// Take returns the results that were read since the last time. A message is with the result that
// follows it: so a function that runs again sees it at the same place.
func (j *Journal) Take() []Result {
	results := j.Results
	j.Results = nil
	return results
}

// start begins a run. What a run before it has done counts only if this one forks it.
func (j *Journal) start(e agent.Event) {
	before := *j
	before.before = nil
	*j = Journal{Began: e.Time, spec: e.Started.Spec, now: e.Started.Spec, run: e.Started.Run, calls: map[string]made{}, unsettled: map[string]made{}, shown: map[fileID]bool{}, before: &before}
}

// flow returns the name of the flow whose run it is; empty if a model decides.
func (j *Journal) flow() string {
	if j.spec != nil && j.spec.Flow {
		return j.spec.Name
	}
	return ""
}

// tool returns what the run knows of a tool: nothing of a step of the flow's own.
func (j *Journal) tool(name string) *agent.ToolSpec {
	var t agent.ToolSpec
	if j.spec != nil {
		t, _ = j.spec.Tool(name)
	}
	return &t
}

// fork takes over what the same flow has done up to the checkpoint. A step that was open there is
// asked for anew.
func (j *Journal) fork(f agent.Forked) {
	if j.before == nil {
		return
	}
	if j.before.flow() != j.flow() { // its results are another agent's word
		j.before = nil
		return
	}
	j.Began, j.said = j.before.Began, j.before.said
	if !f.ReplaceInput { // else the run's first message is the input
		j.Input, j.Files = j.before.Input, j.before.Files
	}
	maps.Copy(j.shown, j.before.shown)
	for _, r := range j.before.Results {
		if r.Inherited = true; r.holdsIn(f) {
			r.Said, j.said = append(j.said, r.Said...), nil
			j.Results = append(j.Results, r)
			continue
		}
		j.said = append(j.said, r.Said...)
	}
	for path, m := range j.before.unsettled {
		if f.Retry && !f.Redoes(path) && (!f.ReplaceInput || saysWhatItUses(m.Tool, m.Arguments)) {
			j.unsettled[path] = m
		}
	}
	j.before = nil
}

func (j *Journal) message(e agent.Event) {
	j.before = nil // a fork is recorded before the run's first message
	m := e.Message
	switch m.Role {
	case agent.RoleUser:
		if j.Input == nil {
			j.Input, j.Files = input(*m), j.show(m.FileParts())
			return
		}
		if m.Note == "" {
			j.said = append(j.said, *m)
		}
	case agent.RoleAssistant:
		for _, c := range m.ToolCalls() {
			m := made{ToolCall: c, run: j.run, may: j.has(c.Tool)}
			if first := j.firstRun(c); first != "" {
				m.run = first
			}
			j.calls[c.ID] = m
			j.Open = append(j.Open, c.ProviderID)
		}
	case agent.RoleTool:
		for _, p := range m.Parts {
			if p.Result != nil {
				j.result(*p.Result, e.Time)
			}
		}
	}
}

func (j *Journal) result(r agent.ToolResult, at time.Time) {
	c, ok := j.calls[r.Call]
	if !ok {
		return
	}
	delete(j.calls, r.Call)
	if delete(j.unsettled, c.ProviderID); r.Status == agent.CallUnknown || r.Status == agent.CallSkipped {
		j.unsettled[c.ProviderID] = c
	}
	j.Open = slices.DeleteFunc(slices.Clone(j.Open), func(path string) bool { return path == c.ProviderID })
	var unclear *agent.ToolSpec
	if t := j.tool(c.Tool); r.Dropped && (r.Status == agent.CallUnknown || r.Status == agent.CallFailed && hasEffects(c.Tool, t)) {
		unclear = t
	}
	// It was not made, or was cut off because nobody waited for it: if the function waits for it
	// now, it is made.
	if r.Status == agent.CallSkipped || r.Dropped && r.Status != agent.CallOK && unclear == nil {
		return
	}
	j.Results = append(j.Results, Result{Path: c.ProviderID, Tool: c.Tool, Status: r.Status, Text: r.Text, Size: r.Size, Code: codeOf(r, c), Files: j.show(r.Files), LeftFiles: r.LeftFiles, At: at, Arguments: c.Arguments, Said: j.said, unclear: unclear})
	j.said = nil
}

// codeOf returns the code of a result. The run rejects a call of what it may not use, and the log has only
// its words for it.
func codeOf(r agent.ToolResult, c made) agent.Code {
	if r.Code != "" || r.Status != agent.CallRejected || c.may {
		return r.Code
	}
	if strings.HasPrefix(c.Tool, agent.SubAgentPrefix) {
		return agent.CodeUnknownAgent
	}
	return agent.CodeUnknownTool
}

// has reports whether the run has a tool now; true if nobody knows.
func (j *Journal) has(name string) bool {
	if j.now == nil {
		return true
	}
	_, has := j.now.Tool(name)
	return has
}

// show returns the files of parts, and lets the function pass them on.
func (j *Journal) show(parts []agent.Part) (files []agent.File) {
	for _, p := range parts {
		if p.File == nil {
			continue
		}
		if files = append(files, *p.File); j.shown != nil {
			j.shown[fileID{p.File.Session, p.File.Digest}] = true
		}
	}
	return files
}

// hasEffects reports whether a step that was stopped on the way may have had an effect. It says then
// that it failed. A sub-agent is cancelled as a whole, and a model call has none.
func hasEffects(name string, t *agent.ToolSpec) bool {
	return name != agent.GenerateTool && t.Executor != agent.ExecutorSubAgent
}

// input returns a run's input as a function reads it: the start's data or text, which come after
// a briefing.
func input(m agent.Message) []byte {
	for _, p := range slices.Backward(m.Parts) {
		if p.Type == agent.PartText {
			return []byte(p.Text)
		}
	}
	return []byte{}
}

// sameJSON reports whether two JSON values are the same, however they are written. Numbers are
// compared as they are written: a long one is no float.
func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	plain := func(raw json.RawMessage) []byte {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		var v any
		if d.Decode(&v) != nil {
			return raw
		}
		out, err := json.Marshal(v) // with sorted keys
		if err != nil {
			return raw
		}
		return out
	}
	return bytes.Equal(plain(a), plain(b))
}
