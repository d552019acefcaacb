package loop

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/excerpt"
	"github.com/fermata-agents/fermata/internal/glob"
	"github.com/fermata-agents/fermata/internal/wire"
)

// Which tools a model is offered follows from its conversation alone: from what it found and what
// it called there. So a fork, the session's next run and a new execution offer the same, and no
// state has to say so. The activity that asks the model has the conversation and the descriptions.
// It offers, and it searches; the run refuses what was hidden.

// Limits of a search: how many tools it finds, and how much of a query and of a description it
// reads, in bytes.
const (
	maxFound       = 8
	maxQuery       = 512
	maxSearched    = 4 << 10
	maxDescription = 240 // of a found tool, in the result
	minShare       = 5   // a tool whose score is less than this part of the best one's is left out
	minPart        = 3   // of a name: a shorter word counts only as a whole word
	maxSearches    = 4   // of one reply: each compares all hidden tools
)

// HiddenTools returns the names of the tools that a model with this conversation is not offered, if the
// Spec hides tools.
func HiddenTools(spec *agent.Spec, conversation []agent.Message) map[string]bool {
	hidden := map[string]bool{}
	idle, turns := idleTurns(conversation)
	for _, t := range spec.Toolset {
		since, known := idle[t.Name]
		if !known {
			since = turns
		}
		switch search, narrowing := spec.ToolSearch, spec.ToolNarrowing; {
		case t.Executor != "" && t.Executor != agent.ExecutorClient: // the runtime's own, and sub-agents
		case search != nil && glob.MatchesAny(search.Always, t.Name):
		case search != nil && !known:
			hidden[t.Name] = true
		case narrowing != nil && t.ReadOnly && t.Approval == nil && !spec.NeedsToEnd(t.Name) && since >= narrowing.WindowTurns:
			hidden[t.Name] = true
		}
	}
	return hidden
}

// idleTurns returns for each tool that was found or called in a conversation how many turns ago that
// was, and how many turns the conversation has. A call that was refused is no use of its tool.
func idleTurns(conversation []agent.Message) (idle map[string]int, turns int) {
	at := map[string]int{}
	for _, m := range conversation {
		if m.Role == agent.RoleAssistant {
			turns++
		}
		for _, p := range m.Parts {
			if r := p.Result; r != nil && r.Status != agent.CallRejected && r.Status != agent.CallSkipped {
				at[r.Tool] = turns
				for _, name := range r.Tools {
					at[name] = turns
				}
			}
		}
	}
	idle = map[string]int{}
	for name, turn := range at { //workflowcheck:ignore the order does not matter
		idle[name] = turns - turn
	}
	return idle, turns
}

// SearchTools answers the calls of tool_search in a reply, in order. It looks among the tools that
// are hidden.
func SearchTools(spec *agent.Spec, hidden map[string]bool, calls []agent.ToolCall) (all []wire.FoundTools) {
	var index []searchable // made for the first search, and used by all
	searches := 0
	for _, c := range calls {
		if c.Tool != agent.ToolSearchTool || !spec.HidesTools() || len(all) == maxCalls {
			continue
		}
		if searches++; searches > maxSearches {
			all = append(all, wire.FoundTools{Err: fmt.Sprintf("Not executed: one reply may search %d times. Read what was found, and search again in the next reply.", maxSearches)})
			continue
		}
		var asked struct {
			Query string `json:"query"`
		}
		if json.Unmarshal(c.Arguments, &asked) != nil {
			asked.Query = ""
		}
		words := wordsOf(asked.Query, maxQuery)
		if len(words) == 0 {
			all = append(all, wire.FoundTools{Err: "The arguments do not fit: query has no word to look for."})
			continue
		}
		if index == nil {
			index = searchables(spec, hidden)
		}
		all = append(all, find(spec, index, asked.Query, words))
	}
	return all
}

// searchable is a hidden tool with the words in which a search looks.
type searchable struct {
	agent.ToolSpec
	lower       string // its name
	name, about map[string]bool
}

// searchables returns the hidden tools in the Spec's order.
func searchables(spec *agent.Spec, hidden map[string]bool) []searchable {
	index := []searchable{}
	for _, t := range spec.Toolset {
		if hidden[t.Name] {
			index = append(index, searchable{t, strings.ToLower(t.Name), wordsOf(t.Name, maxSearched), wordsOf(t.Description, maxSearched)})
		}
	}
	return index
}

// find returns the hidden tools that fit a query best. Of two that fit alike, the first in the Spec
// comes first.
func find(spec *agent.Spec, index []searchable, query string, words map[string]bool) wire.FoundTools {
	type hit struct {
		tool  agent.ToolSpec
		score int
	}
	var hits []hit
	for _, t := range index {
		if n := t.score(query, words); n > 0 {
			hits = append(hits, hit{t.ToolSpec, n})
		}
	}
	if len(hits) == 0 {
		return wire.FoundTools{Text: spec.Text(agent.TextNoToolFound, "count", strconv.Itoa(len(index)))}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return b.score - a.score })
	// A tool that has only a common word of the query, where another has its name, was not meant.
	best := hits[0].score
	hits = slices.DeleteFunc(hits, func(h hit) bool { return h.score*minShare < best })
	var found wire.FoundTools
	for _, h := range hits[:min(maxFound, len(hits))] {
		about := strings.Join(strings.Fields(h.tool.Description), " ")
		found.Names = append(found.Names, h.tool.Name)
		found.Text += strings.TrimSuffix(h.tool.Name+": "+excerpt.Of(about, maxDescription, len(about)), ": ") + "\n"
	}
	if more := len(hits) - len(found.Names); more > 0 {
		found.Text += fmt.Sprintf("(%d more fit)\n", more)
	}
	return found
}

// score says how well a tool fits: a word of its name counts more than one of its description, and
// its whole name most.
func (t searchable) score(query string, words map[string]bool) (n int) {
	if strings.EqualFold(strings.TrimSpace(query), t.Name) {
		n += 100
	}
	for w := range words { //workflowcheck:ignore a sum has no order
		switch {
		case t.name[w]:
			n += 10
		case len(w) >= minPart && strings.Contains(t.lower, w):
			n += 5
		}
		if t.about[w] {
			n += 2
		}
	}
	return n
}

// wordsOf returns the words of the beginning of a text, in lower case. Signs part words,
// and so does a capital letter after a small one.
func wordsOf(text string, most int) map[string]bool {
	text = strings.ToValidUTF8(text[:min(len(text), most)], "")
	var parted strings.Builder
	small := false
	for _, r := range text {
		if small && unicode.IsUpper(r) {
			parted.WriteRune(' ')
		}
		small = unicode.IsLower(r)
		parted.WriteRune(unicode.ToLower(r))
	}
	words := map[string]bool{}
	for _, w := range strings.FieldsFunc(parted.String(), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		words[w] = true
	}
	return words
}

// searchTools gives the calls of tool_search their results. They change nothing, so nobody is asked
// and no activity makes them.
func (s *step) searchTools(found []wire.FoundTools) {
	n := 0
	for i, c := range s.Calls.List {
		if c.Tool != agent.ToolSearchTool || n >= len(found) {
			continue
		}
		f := found[n]
		n++ // counts rejected calls too: found has an entry for each call
		switch {
		case c.State != CallPending:
		case f.Err != "":
			s.setResult(i, agent.CallRejected, fit(f.Err, maxFault))
		default:
			size := len(f.Text)
			for _, name := range f.Names {
				size += len(name) + 3
			}
			s.setResultAs(i, agent.ToolResult{Call: c.ID, Tool: c.Tool, Status: agent.CallOK, Text: f.Text, Tools: f.Names}, size)
		}
	}
}
