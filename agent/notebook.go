package agent

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// NotebookTool is the tool with which a model writes its notebook. An agent has it if its
// definition has [Definition.Notebook].
const NotebookTool = "notebook"

// MaxNotebook is the longest notebook, in bytes of JSON.
const MaxNotebook = 16 << 10

// NotebookPolicy gives an agent a notebook: a short text that its model writes itself and reads at
// the end of every request. The zero value is a notebook without reminders.
type NotebookPolicy struct {
	// Remind is after how many turns without a change the model is reminded to bring its notebook up
	// to date; zero means never.
	Remind int `json:"remind,omitempty"`
}

// maxRemind is the highest [NotebookPolicy.Remind].
const maxRemind = 1000

// Check returns a [CodeInvalidInput] error that names the field.
func (p *NotebookPolicy) Check() error {
	if p != nil && (p.Remind < 0 || p.Remind > maxRemind) {
		return Errorf(CodeInvalidInput, "notebook.remind is a number of turns, 1 to %d, not %d; leave it out for no reminder", maxRemind, p.Remind).WithPath("notebook.remind")
	}
	return nil
}

// Notebook is what a model has written down about its work. The zero value is an empty notebook that
// was never written.
type Notebook struct {
	// Version counts the updates: 1, 2, 3 …
	Version int `json:"version"`
	// Call is the tool call that wrote this version.
	Call      string   `json:"call,omitempty"`
	Goals     []string `json:"goals,omitempty"`
	OpenItems []string `json:"open_items,omitempty"`
	Facts     []Fact   `json:"facts,omitempty"`
	// Refs are sources that stay in the request although no fact cites them: see [Fact.Source].
	Refs []string `json:"refs,omitempty"`
}

// Fact is something that the model has found, and where.
type Fact struct {
	Text string `json:"text"`
	// Source is the id of a tool call (t3.1) or of a message (m12), the handle of a file
	// (chart.png#3f9a0c1b), or "artifact:" with the name of an artifact.
	Source string `json:"source"`
}

// NotebookChange is what a call of the tool notebook changes. A list that is nil stays as it is; an
// empty one empties the list.
type NotebookChange struct {
	Goals     *[]string `json:"goals,omitempty"`
	OpenItems *[]string `json:"open_items,omitempty"`
	Facts     *[]Fact   `json:"facts,omitempty"`
	Refs      *[]string `json:"refs,omitempty"`
}

// Apply returns the notebook's next version, which a call has written.
func (n Notebook) Apply(c NotebookChange, call string) Notebook {
	n.Version, n.Call = n.Version+1, call
	replace(&n.Goals, c.Goals)
	replace(&n.OpenItems, c.OpenItems)
	replace(&n.Facts, c.Facts)
	replace(&n.Refs, c.Refs)
	return n
}

func replace[T any](list, with *[]T) {
	if with != nil {
		*list = slices.Clone(*with)
	}
}

// Empty reports whether nothing is written in the notebook.
func (n Notebook) Empty() bool {
	return len(n.Goals)+len(n.OpenItems)+len(n.Facts)+len(n.Refs) == 0
}

// Sources returns what the notebook cites, in its order, each once.
func (n Notebook) Sources() (all []string) {
	for _, f := range n.Facts {
		if !slices.Contains(all, f.Source) {
			all = append(all, f.Source)
		}
	}
	for _, r := range n.Refs {
		if !slices.Contains(all, r) {
			all = append(all, r)
		}
	}
	return all
}

// Size returns how many bytes the notebook has in JSON, for [MaxNotebook].
func (n Notebook) Size() int {
	raw, err := json.Marshal(n)
	if err != nil {
		return MaxNotebook + 1
	}
	return len(raw)
}

// Check returns a [CodeTooLarge] error for a notebook that is too long, and a [CodeInvalidInput] error
// for one that no call can have written.
func (n Notebook) Check() error {
	if size := n.Size(); size > MaxNotebook {
		return Errorf(CodeTooLarge, "the notebook would have %d bytes; at most %d are kept: shorten it, and leave out what is done", size, MaxNotebook)
	}
	blank := func(text string) bool { return strings.TrimSpace(text) == "" || !utf8.ValidString(text) }
	switch {
	case n.Version < 1:
		return Errorf(CodeInvalidInput, "a notebook's versions count from 1")
	case slices.ContainsFunc(n.Goals, blank), slices.ContainsFunc(n.OpenItems, blank), slices.ContainsFunc(n.Refs, blank):
		return Errorf(CodeInvalidInput, "an entry is empty: leave it out")
	case slices.ContainsFunc(n.Facts, func(f Fact) bool { return blank(f.Text) }):
		return Errorf(CodeInvalidInput, "a fact has no text: leave it out")
	case slices.ContainsFunc(n.Facts, func(f Fact) bool { return blank(f.Source) }):
		return Errorf(CodeInvalidInput, "a fact has no source: say where it was found")
	}
	return nil
}
