package activities

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/excerpt"
	"github.com/fermata-agents/fermata/internal/wire"
	"github.com/fermata-agents/fermata/store"
)

// source is something that a notebook may cite.
type source struct{ id, what string }

// artifactSource begins the id of an artifact as a source.
const artifactSource = "artifact:"

// sourcesOf returns what the conversation has that a notebook may cite, the newest last.
func sourcesOf(log *store.View, entries []store.Entry) (all []source) {
	for _, a := range log.Artifacts() {
		all = append(all, source{artifactSource + a.Name, ""})
	}
	for _, e := range entries {
		for _, p := range e.Parts {
			if p.Result != nil {
				all = append(all, source{callSource(p.Result.Call, e.Seq), p.Result.Tool})
			}
		}
		for _, f := range e.Files() {
			all = append(all, source{f.Handle(), ""})
		}
		if e.Role != agent.RoleTool && e.Note != agent.NoteSummary {
			all = append(all, source{messageSource(e), e.Message.Text()})
		}
	}
	return all
}

// messageSource returns the id of a message as a source: m12 is that of event 12.
func messageSource(e store.Entry) string { return fmt.Sprintf("m%d", e.Seq) }

// callSource returns the id of a call's result as a source: t1.1#8 is that in event 8. A call's own id
// comes again in the session's next run, where the notebook still is.
func callSource(call string, seq int64) string { return fmt.Sprintf("%s#%d", call, seq) }

// citable decides what a notebook may cite.
type citable struct {
	known map[string]bool
	calls map[string]string // by a call's own id, its newest result
	files []agent.Part
	list  []source
}

// newCitable returns the sources of a conversation. What the notebook cites already stays a source,
// also if the conversation has been compacted since.
func newCitable(log *store.View, entries []store.Entry) citable {
	c := citable{known: map[string]bool{}, calls: map[string]string{}, files: filePartsOf(entries), list: sourcesOf(log, entries)}
	for _, e := range entries {
		for _, p := range e.Parts {
			if p.Result != nil {
				c.calls[p.Result.Call] = callSource(p.Result.Call, e.Seq)
			}
		}
	}
	for _, s := range c.list {
		c.known[s.id] = true
	}
	for _, id := range log.Notebook().Sources() {
		c.known[id] = true
	}
	return c
}

// resolve returns the id of the source that a model means, and whether there is one.
func (c citable) resolve(said string) (id string, ok bool) {
	said = strings.Trim(strings.TrimSpace(said), `"`) // the list shows ids in quotes
	first, _, _ := strings.Cut(said, " ")             // the list names the tool behind the id
	for _, id := range []string{said, strings.Trim(first, `"`), artifactSource + said} {
		if c.known[id] {
			return id, true
		}
	}
	if id, ok := c.calls[first]; ok {
		return id, true
	}
	if p, err := agent.FindFile(c.files, said); err == nil {
		return p.File.Handle(), true
	}
	return said, false
}

// maxSources is how many sources the model is shown, the newest.
const maxSources = 12

// String lists the newest sources: calls with their tools, and what people said.
func (c citable) String() string {
	var lines []string
	for _, s := range slices.Backward(c.list) {
		if len(lines) == maxSources {
			break
		}
		line := inQuotes(s.id)
		if words := strings.Join(strings.Fields(s.what), " "); words != "" {
			line += " (" + inQuotes(strings.TrimSpace(excerptLine(words))) + ")"
		}
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return "none yet"
	}
	return strings.Join(lines, ", ")
}

// excerptLine returns the beginning of a text of one line.
func excerptLine(text string) string {
	const most = 40
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}

// updateNotebook makes the notebook's next version of the first call that may write one. It adds to
// the calls' faults what is wrong with others.
func updateNotebook(have conversation, spec *agent.Spec, calls []agent.ToolCall, faults []string) (update *wire.NotebookUpdate, _ []string) {
	if spec.Notebook == nil {
		return nil, faults
	}
	for i, c := range calls {
		if c.Tool != agent.NotebookTool || c.Malformed != "" || update != nil {
			continue
		}
		next, err := nextNotebook(have, c.Arguments)
		if err != nil {
			faults = withAt(faults, len(calls), i, "Not written: "+messageOf(err)+".")
			continue
		}
		update = &wire.NotebookUpdate{Call: i, Notebook: next, Size: next.Size()}
	}
	return update, faults
}

func nextNotebook(have conversation, arguments json.RawMessage) (agent.Notebook, error) {
	if len(arguments) > 4*agent.MaxNotebook { // escapes may make a short notebook longer, but not by that much
		return agent.Notebook{}, agent.Errorf(agent.CodeTooLarge, "the arguments have %d bytes; a notebook has at most %d: shorten it", len(arguments), agent.MaxNotebook)
	}
	var change agent.NotebookChange
	d := json.NewDecoder(strings.NewReader(string(arguments)))
	d.DisallowUnknownFields()
	if err := d.Decode(&change); err != nil {
		return agent.Notebook{}, agent.Errorf(agent.CodeInvalidInput, "the arguments do not fit: %w", err)
	}
	if change == (agent.NotebookChange{}) {
		return agent.Notebook{}, errors.New("give at least one of goals, open_items, facts and refs")
	}
	next := have.log.Notebook().Apply(change, "")
	if err := next.Check(); err != nil {
		return agent.Notebook{}, err
	}
	sources := newCitable(have.log, have.entries)
	for i, f := range next.Facts {
		id, ok := sources.resolve(f.Source)
		if !ok {
			return agent.Notebook{}, fmt.Errorf("the fact %q cites %q, which is no source of this conversation; the newest sources are: %s", excerptLine(f.Text), excerptLine(f.Source), sources)
		}
		next.Facts[i].Source = id
	}
	for i, r := range next.Refs {
		id, ok := sources.resolve(r)
		if !ok {
			return agent.Notebook{}, fmt.Errorf("refs has %q, which is no source of this conversation; the newest sources are: %s", excerptLine(r), sources)
		}
		next.Refs[i] = id
	}
	return next, next.Check() // a handle may be longer than the name that was given
}

// recital returns what the model reads of its notebook at the end of a request; empty if the agent has none.
func recital(log *store.View, spec *agent.Spec, entries []store.Entry, turn int) string {
	if spec.Notebook == nil {
		return ""
	}
	var b strings.Builder
	n := log.Notebook()
	if n.Empty() {
		b.WriteString("[Your notebook is empty. Write your goals, open items and facts into it with the tool notebook: you read it here in every turn, also after older messages were summed up.")
	} else {
		fmt.Fprintf(&b, "[Your notebook, version %d. You wrote it with the tool notebook; keep it up to date.\n", n.Version)
		section(&b, "Goals", quoteAll(n.Goals))
		section(&b, "Open items", quoteAll(n.OpenItems))
		var facts []string
		for _, f := range n.Facts {
			facts = append(facts, inQuotes(f.Text)+" (source: "+inQuotes(f.Source)+")")
		}
		section(&b, "Facts", facts)
		section(&b, "Refs", quoteAll(n.Refs))
	}
	if due := overdue(log, spec, turn); due > 0 {
		fmt.Fprintf(&b, "\nYou have not changed it for %d turns: bring it up to date now, and take out what is done.", due)
	}
	fmt.Fprintf(&b, "\nThe newest sources that a fact can cite: %s]", newCitable(log, entries))
	return b.String()
}

// inQuotes returns a text on one line, as a JSON string: whatever an entry has, it can't end the
// recital, or look like a part of it.
func inQuotes(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(strings.Join(strings.Fields(text), " ")); err != nil {
		return `""` // no string fails
	}
	return strings.TrimSpace(b.String())
}

func quoteAll(texts []string) (all []string) {
	for _, t := range texts {
		all = append(all, inQuotes(t))
	}
	return all
}

func section(b *strings.Builder, title string, lines []string) {
	if len(lines) > 0 {
		fmt.Fprintf(b, "%s:\n- %s\n", title, strings.Join(lines, "\n- "))
	}
}

// overdue returns for how many turns the notebook was not changed, if the model is to be reminded;
// else zero.
func overdue(log *store.View, spec *agent.Spec, turn int) int {
	every := spec.Notebook.Remind
	if every == 0 {
		return 0
	}
	// Turns of earlier runs do not count: the numbers of a run's turns begin again.
	since := turn - 1
	for _, e := range slices.Backward(log.Events()) {
		if e.Notebook != nil || e.Started != nil || e.Forked != nil {
			since -= e.Turn
			break
		}
	}
	if since < every {
		return 0
	}
	return since
}

// lineEnds marks every line of a text, so that none of them can look like the runtime's.
var lineEnds = strings.NewReplacer("\r\n", "\n| ", "\n", "\n| ", "\r", "\n| ", "\v", "\n| ", "\f", "\n| ", "\u0085", "\n| ", "\u2028", "\n| ", "\u2029", "\n| ")

// citedBodies returns the text of what the notebook cites, as far as it fits, for a summary that
// replaces it. kept are the messages that stay as they are.
func citedBodies(events []agent.Event, n agent.Notebook, kept []store.Entry, room int) string {
	stays := map[string]bool{}
	for _, s := range sourcesOf(&store.View{}, kept) {
		stays[s.id] = true
	}
	bodies := bodiesOf(events)
	var b strings.Builder
	for _, id := range n.Sources() {
		body, has := bodies[id]
		if stays[id] || !has {
			continue
		}
		if b.Len() == 0 {
			b.WriteString("\n\n[What your notebook cites, word for word:]")
		}
		head := "\n" + id + " " + body.what + ":\n"
		text := "| " + lineEnds.Replace(body.id)
		if most := room - b.Len() - len(head); len(text) > most {
			const least = 256
			if most < least {
				text = "| (left out here; it has too many bytes)"
			} else {
				text = excerpt.Of(text, most-128, len(body.id))
			}
		}
		b.WriteString(head + text)
	}
	return b.String()
}

// bodiesOf returns the text of each call's result and each message, by its id as a source.
func bodiesOf(events []agent.Event) map[string]source {
	all := map[string]source{}
	for _, e := range events {
		if e.Message == nil || e.Message.Note == agent.NoteSummary {
			continue
		}
		for _, p := range e.Message.Parts {
			if p.Result != nil {
				all[callSource(p.Result.Call, e.Seq)] = source{p.Result.Text, p.Result.Tool}
			}
		}
		if e.Message.Role != agent.RoleTool {
			all[messageSource(store.Entry{Seq: e.Seq})] = source{e.Message.Text(), string(e.Message.Role)}
		}
	}
	return all
}
