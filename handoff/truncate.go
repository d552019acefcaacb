package handoff

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/fermata-agents/fermata/agent"
)

// maxHandoff bounds a handoff's JSON, in bytes (docs/wire.md §6).
const maxHandoff = 256 << 10

// Truncate keeps a handoff's JSON under 256 kB; a smaller one stays as it is. Past
// it the longest texts of the children are cut, each child's to the same room;
// the run's own are cut past half of what there is for texts. An agent of which
// something was cut has an item with the ref "session:…" that names what: the
// whole is in that session's transcript.
// Of 1,000 agents each stays in the tree with its numbers, and effects that nobody
// knows are the last to go, of the deepest agents first. Only a tree of so many
// agents that they do not fit without any texts (some 500) stays larger, up to 1 MB.
// Of more agents those nearest to the root are shown, and an item of the root's with
// the ref "session:…" tells how many are not.
func Truncate(h agent.Handoff) agent.Handoff {
	if size(h) <= maxHandoff {
		return h
	}
	h = copyTree(h)
	lost := prune(&h)
	parts := unfold(&h, 0, nil)
	room := maxHandoff
	for i := range parts {
		room -= parts[i].least
	}
	room = strip(parts, room)
	share(parts, max(room, 0))
	if lost > 0 {
		h.InFlight = append(slices.Clip(h.InFlight), agent.WorkItem{What: fmt.Sprintf("[cut here: %d agents below are not shown]", lost), Ref: refTo(h.Session), By: h.Session})
	}
	return h
}

// maxAgents is how many agents of a tree are shown. Without any texts so many fit into a
// payload, which the end of a run has to.
const maxAgents = 1000

// prune leaves so many agents in a tree, those nearest to its root, and returns how many
// are left out.
func prune(h *agent.Handoff) (lost int) {
	room := maxAgents - 1
	for level := []*agent.Handoff{h}; len(level) > 0; {
		var below []*agent.Handoff
		for _, one := range level {
			kept := min(len(one.Children), room)
			for i := range one.Children[kept:] {
				for range one.Children[kept+i].All() {
					lost++
				}
			}
			one.Children = one.Children[:kept]
			for i := range one.Children {
				below = append(below, &one.Children[i])
			}
			room -= kept
		}
		level = below
	}
	return lost
}

// part is one agent of a tree.
type part struct {
	*agent.Handoff
	depth int
	// least is the size of its smallest form that still says where to look, and
	// over what its texts take beyond; zero if it is not to be cut.
	least, over int
}

// unfold lists the agents of a tree, the root first.
func unfold(h *agent.Handoff, depth int, into []part) []part {
	whole, least := sizeOf(*h), sizeOf(smallest(*h))
	least = min(least, whole)
	into = append(into, part{Handoff: h, depth: depth, least: least, over: whole - least})
	for i := range h.Children {
		into = unfold(&h.Children[i], depth+1, into)
	}
	return into
}

// strip takes all texts from the deepest agents until the others have room, and
// returns it.
func strip(parts []part, room int) int {
	order := make([]int, len(parts))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(parts[b].depth, parts[a].depth) })
	for _, i := range order {
		if room >= 0 {
			break
		}
		p := &parts[i]
		*p.Handoff = bare(*p.Handoff)
		room += p.least - sizeOf(*p.Handoff)
		p.over = 0
	}
	return room
}

// share gives each agent its part of the room. The root has what the others do
// not need, and half of it in any case.
func share(parts []part, room int) {
	var others []int
	need := 0
	for _, p := range parts[1:] {
		others = append(others, p.over)
		need += p.over
	}
	own := min(parts[0].over, max(room/2, room-need))
	most := even(others, room-own)
	for i, p := range parts {
		if i > 0 {
			own = most
		}
		if p.over > own {
			*p.Handoff = shrink(*p.Handoff, own)
		}
	}
}

// even is how much each may have at most, so that all have room together.
func even(needs []int, room int) int {
	sorted := slices.Sorted(slices.Values(needs))
	for i, need := range sorted {
		most := room / (len(sorted) - i)
		if need > most {
			return most
		}
		room -= need
	}
	return math.MaxInt
}

// cutText stands for a text of which nothing is left.
const cutText = "[cut]"

// smallest is an agent's handoff without its texts and lists, and with a word
// on where the whole is.
func smallest(h agent.Handoff) agent.Handoff {
	s := bare(h)
	s.Summary, s.UnknownEffects, s.Tree = short(h.Summary), h.UnknownEffects, h.Tree
	return point(s, h, cutText)
}

// bare is the least that is left of an agent.
func bare(h agent.Handoff) agent.Handoff {
	h.Session, h.Run, h.Agent, h.Status = named(h.Session), named(h.Run), named(h.Agent), named(h.Status)
	h.Task, h.Reason, h.Summary = short(h.Task), short(h.Reason), short(h.Summary)
	if n := len(h.UnknownEffects); n > 0 {
		h.Summary = fmt.Sprintf("[cut: %d effects that nobody knows]", n)
	}
	h.Done, h.InFlight, h.NotStarted, h.Failed, h.Tree = nil, nil, nil, nil, agent.Tally{}
	h.OpenQuestions, h.Requests, h.UnknownEffects, h.Evidence, h.Decisions = nil, nil, nil, nil, nil
	return h
}

// named is a name, which is no longer than a session's unless somebody made it up.
func named[T ~string](name T) T {
	const most = 255
	if len(name) <= most {
		return name
	}
	return cutText
}

func short(text string) string {
	if len(text) <= len(cutText) {
		return text
	}
	return cutText
}

// point adds to what is left of a handoff an item that says where the whole of it
// is, to the first list that had something in it.
func point(left, whole agent.Handoff, what string) agent.Handoff {
	item := agent.WorkItem{What: what, Ref: refTo(whole.Session)}
	to := &left.InFlight
	switch {
	case len(whole.Done) > 0:
		to = &left.Done
	case len(whole.InFlight) > 0:
	case len(whole.NotStarted) > 0:
		to = &left.NotStarted
	case len(whole.Failed) > 0:
		to = &left.Failed
	case whole.Status == agent.StatusCompleted:
		to = &left.Done
	}
	*to = append(slices.Clip(*to), item)
	return left
}

// copyTree returns a tree whose agents can be replaced without changing h.
func copyTree(h agent.Handoff) agent.Handoff {
	h.Children = slices.Clone(h.Children)
	for i, child := range h.Children {
		h.Children[i] = copyTree(child)
	}
	return h
}

// sizeOf is at least what an agent takes in the JSON of its tree, its children
// left out.
func sizeOf(h agent.Handoff) int {
	const frame = len(`,"children":[],`)
	h.Children = nil
	return size(h) + frame
}

// size is the length of a value's JSON.
func size(v any) int {
	b, _ := json.Marshal(v) // of texts and numbers: it can't fail
	return len(b)
}
