package handoff

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/fermata-agents/fermata/agent"
)

// maxHandoff limits a handoff's JSON, in bytes (docs/wire.md §6).
const maxHandoff = 256 << 10

// Truncate keeps a handoff's JSON below 256 kB. A smaller one stays as it is.
//
// First the longest texts of children are cut, each child's to the same size. The run's
// own texts are cut only beyond half of the space. An agent with cut texts gets an item
// with the ref "session:…", which says what was cut; its transcript has all of it.
// Effects with an unknown outcome go last, the deepest agents' first.
//
// Up to 1,000 agents stay in the tree, with their numbers. Above some 500 agents the
// handoff stays larger than 256 kB even without texts, up to 1 MB. Beyond 1,000 agents
// those nearest to the root stay, and an item of the root says how many are missing.
func Truncate(h agent.Handoff) agent.Handoff {
	if size(h) <= maxHandoff {
		return h
	}
	// h and its children may be shared with the run's state, which must not change.
	h = copyTree(h)
	lost := prune(&h)
	parts := unfold(&h, 0, nil)
	room := maxHandoff
	for i := range parts {
		room -= parts[i].least
	}
	room = strip(parts, room)
	share(parts, max(room, 0))
	// After share, which would cut this item too.
	if lost > 0 {
		h.InFlight = append(slices.Clip(h.InFlight), agent.WorkItem{What: fmt.Sprintf("[cut here: %d agents below are not shown]", lost), Ref: refTo(h.Session), By: h.Session})
	}
	return h
}

// maxAgents is how many agents of a tree are shown. Without texts, so many fit into a
// payload, which has to carry the run's end.
const maxAgents = 1000

// prune keeps maxAgents agents of a tree, those nearest to its root. It returns how many
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
	// least is the size of the agent's smallest form that still says where to look. over
	// is the size of its texts beyond that; 0 if it must not be cut further.
	least, over int
}

// unfold returns the agents of a tree, the root first.
func unfold(h *agent.Handoff, depth int, into []part) []part {
	whole, least := sizeOf(*h), sizeOf(smallest(*h))
	least = min(least, whole)
	into = append(into, part{Handoff: h, depth: depth, least: least, over: whole - least})
	for i := range h.Children {
		into = unfold(&h.Children[i], depth+1, into)
	}
	return into
}

// strip removes all texts of the deepest agents until the rest has room. It returns the
// room.
func strip(parts []part, room int) int {
	order := make([]int, len(parts))
	for i := range order {
		order[i] = i
	}
	// Stable: every build must cut the same agents in a replay.
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

// share divides the room among the agents. The root gets what the others do not need, and
// at least half.
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

// even returns how much each may have at most so that all fit.
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

// cutText replaces a text of which nothing is left.
const cutText = "[cut]"

// smallest returns an agent's handoff without texts and lists, and with a note where the
// whole is.
func smallest(h agent.Handoff) agent.Handoff {
	s := bare(h)
	s.Summary, s.UnknownEffects, s.Tree = short(h.Summary), h.UnknownEffects, h.Tree
	return point(s, h, cutText)
}

// bare returns the least that is kept of an agent.
func bare(h agent.Handoff) agent.Handoff {
	h.Session, h.Run, h.Agent, h.Status = named(h.Session), named(h.Run), named(h.Agent), named(h.Status)
	h.Task, h.Reason, h.Summary = short(h.Task), short(h.Reason), short(h.Summary)
	if n := len(h.UnknownEffects); n > 0 {
		h.Summary = fmt.Sprintf("[cut: %d effects that nobody knows]", n)
	}
	h.Done, h.InFlight, h.NotStarted, h.Failed, h.Tree = nil, nil, nil, nil, agent.Tally{}
	h.Rationale, h.Blockers, h.NextSteps = "", nil, nil
	h.OpenQuestions, h.Requests, h.UnknownEffects, h.Evidence, h.Decisions, h.Artifacts = nil, nil, nil, nil, nil, nil
	return h
}

// named returns a name. One that is longer than any session's was made up, and is cut.
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

// point adds an item that says where the whole handoff is, to the first list that was not
// empty.
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

// copyTree returns a copy whose agents can be replaced without changing h.
func copyTree(h agent.Handoff) agent.Handoff {
	h.Children = slices.Clone(h.Children)
	for i, child := range h.Children {
		h.Children[i] = copyTree(child)
	}
	return h
}

// sizeOf returns at least the size of an agent in its tree's JSON, without its children.
func sizeOf(h agent.Handoff) int {
	const frame = len(`,"children":[],`)
	h.Children = nil
	return size(h) + frame
}

// size returns the length of a value's JSON.
func size(v any) int { // texts and numbers always encode
	b, _ := json.Marshal(v) // of texts and numbers: it can't fail
	return len(b)
}
