package handoff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fermata-agents/fermata/agent"
)

// deepTree is a tree of n agents, three below each, that are all as full of texts
// as long as that.
func deepTree(n, long int) agent.Handoff {
	text := strings.Repeat("A long text, <b>with</b> \"quotes\" & ümläuts.\n", long/40)
	var tree func(session string, n int) agent.Handoff
	tree = func(session string, n int) agent.Handoff {
		item := func(name string) []agent.WorkItem {
			return []agent.WorkItem{{What: name, By: session}, {What: name + text, Ref: "a.go", By: session}}
		}
		h := agent.Handoff{
			V: 1, Session: session, Run: "01a1b2c3-0000-7000-8000-00000000000", Agent: "researcher", Status: agent.StatusStopped, Task: "Task " + text, Reason: "Why " + text, Summary: "Sum " + text,
			Done: item("did"), InFlight: item("does"), NotStarted: item("will"), Failed: item("failed"),
			OpenQuestions: []string{"q " + text}, Decisions: []string{"d", "d " + text}, Evidence: []agent.Evidence{{Kind: "file", Ref: "a.go", Note: text}},
			Usage: agent.Usage{Input: 1_234_567, Output: 123_456, CacheRead: 123_456, CacheWrite: 12_345, Reasoning: 12_345}, Cost: 412_345,
			Remaining: agent.Remaining{Turns: 12, Tokens: 123_456, Cost: 1_587_655}, Confidence: 0.78, ConfidenceBy: agent.SummarizedByRule, SummarizedBy: agent.SummarizedByModel,
		}
		n--
		for i := 0; i < 3 && n > 0; i++ {
			below := (n + 2 - i) / (3 - i)
			h.Children = append(h.Children, tree(fmt.Sprintf("%s/researcher-%d", session, i+1), below))
			n -= below
		}
		return h
	}
	return tree("trip-42", n)
}

// agentsOf lists what has to stay of every agent of a tree.
func agentsOf(h agent.Handoff) (out []agent.Handoff) {
	for one := range h.All() {
		out = append(out, agent.Handoff{
			V: one.V, Session: one.Session, Run: one.Run, Agent: one.Agent, Status: one.Status, Usage: one.Usage, Cost: one.Cost,
			Remaining: one.Remaining, Confidence: one.Confidence, ConfidenceBy: one.ConfidenceBy, SummarizedBy: one.SummarizedBy,
		})
	}
	return out
}

func pointsTo(h *agent.Handoff, session string) bool {
	return slices.ContainsFunc(slices.Concat(h.Done, h.InFlight, h.NotStarted, h.Failed), func(i agent.WorkItem) bool {
		return i.Ref == "session:"+session && strings.HasPrefix(i.What, "[cut")
	})
}

func TestATreeOf364AgentsFits(t *testing.T) {
	for _, long := range []int{400, 4000} {
		whole := deepTree(364, long)
		h := Truncate(whole)
		require.LessOrEqual(t, len(jsonOf(t, h)), 256<<10)
		require.Greater(t, len(jsonOf(t, h)), 200<<10, "the room is used")
		require.Equal(t, agentsOf(whole), agentsOf(h))
		require.Len(t, agentsOf(h), 364)
		for one := range h.All() {
			require.True(t, pointsTo(one, one.Session) || one.Session == "trip-42", one.Session)
		}
		require.Contains(t, h.Summary, "Sum A long text", "the run's own texts come first")
		require.True(t, reflect.DeepEqual(deepTree(364, long), whole), "what was given is not changed")
		require.True(t, reflect.DeepEqual(h, Truncate(whole)))
	}
}

// Where there is more room, the beginnings of long texts stay.
func TestSmallerTreesKeepMore(t *testing.T) {
	for _, n := range []int{1, 5, 15} {
		whole := deepTree(n, 16_000)
		h := Truncate(whole)
		require.LessOrEqual(t, len(jsonOf(t, h)), 256<<10)
		require.Greater(t, len(jsonOf(t, h)), 128<<10)
		for one := range h.All() {
			require.True(t, pointsTo(one, one.Session))
			require.Contains(t, one.Summary, "Sum A long text")
			require.Contains(t, one.Failed[1].What, "[cut here: ")
			require.Equal(t, "a.go", one.Failed[1].Ref, "where to look stays")
		}
	}
}

// Every list has its part of the room.
func TestLongListsShareTheRoom(t *testing.T) {
	h := skeleton()
	long := []agent.WorkItem{{What: strings.Repeat("x", 300_000)}}
	h.Done, h.InFlight, h.NotStarted, h.Failed = long, long, long, long
	got := Truncate(h)
	require.LessOrEqual(t, len(jsonOf(t, got)), 256<<10)
	require.Greater(t, len(jsonOf(t, got)), 200<<10)
	for _, list := range [][]agent.WorkItem{got.Done, got.InFlight, got.NotStarted, got.Failed} {
		require.Greater(t, len(list[0].What), 25<<10)
		require.Equal(t, "session:trip-42", list[0].Ref)
	}
	require.Equal(t, "[cut: 1 failed, 1 in flight, 1 not started, 1 done]", got.Done[1].What)
}

// The longest sessions that Temporal takes leave no room for anything else.
func TestATreeOfTheLongestNamesFits(t *testing.T) {
	whole := deepTree(364, 1000)
	for one := range whole.All() {
		one.Session += strings.Repeat("x", 255-len(one.Session))
	}
	h := Truncate(whole)
	require.LessOrEqual(t, len(jsonOf(t, h)), 256<<10)
	require.Equal(t, agentsOf(whole), agentsOf(h))
	require.True(t, pointsTo(&h, h.Session), "the deepest lose theirs first")
}

func TestASmallHandoffStays(t *testing.T) {
	h := goldens()["tree"]
	require.Equal(t, h, Truncate(h))
	fits := deepTree(5, 2400)
	require.Greater(t, len(jsonOf(t, fits)), 200<<10)
	require.LessOrEqual(t, len(jsonOf(t, fits)), 256<<10)
	require.True(t, reflect.DeepEqual(fits, Truncate(fits)))

	h.Children = slices.Clone(h.Children)
	h.Children[0].Summary = ""
	text := strings.Repeat("x", maxHandoff-len(jsonOf(t, h)))
	h.Children[0].Summary = text
	require.Len(t, jsonOf(t, h), 256<<10)
	require.Equal(t, text, Truncate(h).Children[0].Summary, "to the last byte")
	h.Children[0].Summary += "x"
	require.Contains(t, Truncate(h).Children[0].Summary, "[cut here: ")
}

func TestTheLongestAreCut(t *testing.T) {
	whole := goldens()["tree"]
	whole.Children = slices.Clone(whole.Children)
	long := strings.Repeat("x", 500_000)
	whole.Children[1].Summary = "S" + long
	whole.Children[1].Failed = append(slices.Clone(whole.Children[1].Failed), agent.WorkItem{What: "F" + long, By: "trip-42/s-2"})
	h := Truncate(whole)
	require.LessOrEqual(t, len(jsonOf(t, h)), 256<<10)
	require.Greater(t, len(jsonOf(t, h)), 128<<10)
	got := h.Children[1]
	require.Contains(t, got.Summary, "[cut here: the result has 500001 bytes")
	require.Equal(t, whole.Children[1].Failed[0], got.Failed[0])
	require.Equal(t, "session:trip-42/s-2", got.Failed[1].Ref)
	require.Contains(t, got.Failed[1].What, "[cut here: ")
	require.Equal(t, agent.WorkItem{What: "[cut: summary, 1 failed]", Ref: "session:trip-42/s-2"}, got.Failed[2])
	h.Children[1] = whole.Children[1]
	require.True(t, reflect.DeepEqual(whole, h), "nobody else is cut")
}

// The run's own texts are cut where they alone are too long.
func TestALongRootIsCut(t *testing.T) {
	h := goldens()["tree"]
	for range 400 {
		h.Done = append(h.Done, agent.WorkItem{What: strings.Repeat("x", 2000), By: "trip-42"})
	}
	got := Truncate(h)
	require.LessOrEqual(t, len(jsonOf(t, got)), 256<<10)
	require.Greater(t, len(got.Done), 50)
	require.Equal(t, h.Children, got.Children)
	require.Equal(t, h.Summary, got.Summary)
	require.Equal(t, h.UnknownEffects, got.UnknownEffects)
	require.Regexp(t, `^\[cut: \d+ done, requests\]$|^\[cut: \d+ done\]$`, got.Done[len(got.Done)-1].What)
}

// Long arguments of a call that waits for an approval go before other texts.
func TestRequestsLoseWhatTheyAreAbout(t *testing.T) {
	h := skeleton()
	h.Requests[0].Call.Arguments = json.RawMessage(`"` + strings.Repeat("x", 300_000) + `"`)
	h.Requests[0].Context = "c"
	got := Truncate(Complete(h, ""))
	require.Equal(t, "Pay 320 EUR to Hotel Roma?", got.Requests[0].Text)
	require.Empty(t, got.Requests[0].Context)
	require.Equal(t, &agent.RequestCall{ID: "t4.2", Tool: "pay"}, got.Requests[0].Call)
	require.Equal(t, agent.WorkItem{What: "[cut: requests]", Ref: "session:trip-42"}, got.Done[1])
	require.NotNil(t, h.Requests[0].Call.Arguments)
}

// Effects that nobody knows stay until there is no room at all, and go from the
// deepest agents first.
func TestUnknownEffectsGoLast(t *testing.T) {
	whole := deepTree(100, 400)
	effects := make([]agent.UnknownEffect, 30)
	for i := range effects {
		effects[i] = agent.UnknownEffect{Call: "t1.1", Tool: "pay", Key: "01a1b2c3/t1.1", Since: "2026-11-21T08:00:00Z"}
	}
	for one := range whole.All() {
		one.UnknownEffects = effects[:5]
	}
	some := Truncate(whole)
	for one := range some.All() {
		require.Len(t, one.UnknownEffects, 5)
	}
	for one := range whole.All() {
		one.UnknownEffects = effects
	}
	h := Truncate(whole)
	require.LessOrEqual(t, len(jsonOf(t, h)), 256<<10)
	require.Len(t, h.UnknownEffects, 30)
	lost, kept := 0, 0
	for one := range h.All() {
		switch depth := strings.Count(one.Session, "/"); len(one.UnknownEffects) {
		case 0:
			require.Equal(t, "[cut: 30 effects that nobody knows]", one.Summary)
			require.GreaterOrEqual(t, depth, 3)
			lost++
		case 30:
			kept++
		}
	}
	require.Equal(t, 100, lost+kept)
	require.Positive(t, lost)
}

// So many agents do not fit; none of them is lost for it.
func TestATreeThatIsTooLarge(t *testing.T) {
	whole := deepTree(1000, 100)
	h := Truncate(whole)
	require.Equal(t, agentsOf(whole), agentsOf(h))
	require.Less(t, len(jsonOf(t, h)), 1000*600)
}

// drawText builds its text out of small draws, so that a failure can be read.
func drawText(t *rapid.T, name string, most int) string {
	unit := rapid.SampledFrom([]string{"x", "ü", "<", "\"\\", "\x00", "\xff", "\n- # ", "😀 ", "\u2028", " word"}).Draw(t, name)
	length := rapid.SampledFrom([]int{0, 1, 7, most / 7, most / 2, most}).Draw(t, "length")
	return rapid.StringN(0, 8, -1).Draw(t, "text") + strings.Repeat(unit, length/len(unit))
}

func drawTexts(t *rapid.T, name string) (texts []string) {
	for range rapid.IntRange(0, 5).Draw(t, name) {
		texts = append(texts, drawText(t, name, 3000))
	}
	return texts
}

func drawTree(t *rapid.T, session string, depth int) agent.Handoff {
	h := agent.Handoff{
		V: 1, Session: session, Run: "01", Agent: "a", Status: rapid.SampledFrom([]agent.Status{agent.StatusCompleted, agent.StatusStopped}).Draw(t, "status"),
		Task: drawText(t, "task", 3000), Reason: drawText(t, "reason", 3000), Summary: drawText(t, "summary", 100_000), OpenQuestions: drawTexts(t, "questions"), Decisions: drawTexts(t, "decisions"),
		Cost: agent.USD(rapid.Int64Range(0, 1e9).Draw(t, "cost")), Confidence: 0.5, ConfidenceBy: agent.SummarizedByModel, SummarizedBy: agent.SummarizedByRule,
	}
	for _, list := range []*[]agent.WorkItem{&h.Done, &h.InFlight, &h.NotStarted, &h.Failed} {
		for _, what := range drawTexts(t, "items") {
			*list = append(*list, agent.WorkItem{What: what, Ref: rapid.SampledFrom([]string{"", "a.go"}).Draw(t, "ref"), By: session})
		}
	}
	for _, note := range drawTexts(t, "notes") {
		h.Evidence = append(h.Evidence, agent.Evidence{Kind: "file", Ref: "a.go", Note: note})
		h.Requests = append(h.Requests, agent.Request{ID: "q-1", Text: note, Context: note, Call: &agent.RequestCall{ID: "t1.1", Tool: "pay", Arguments: json.RawMessage(`{"a":1}`)}})
	}
	for i := range rapid.IntRange(0, 3-depth).Draw(t, "children") {
		h.Children = append(h.Children, drawTree(t, fmt.Sprintf("%s/a-%d", session, i+1), depth+1))
	}
	return h
}

func TestBoundHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := drawTree(t, "s", 0)
		before, err := json.Marshal(whole)
		require.NoError(t, err)
		h := Truncate(whole)
		after, err := json.Marshal(h)
		require.NoError(t, err)
		require.LessOrEqual(t, len(after), maxHandoff)
		require.Equal(t, agentsOf(whole), agentsOf(h))
		again, err := json.Marshal(whole)
		require.NoError(t, err)
		require.True(t, bytes.Equal(before, again), "what was given is not changed")
		require.True(t, reflect.DeepEqual(h, Truncate(h)), "what fits is not cut again")
		if len(before) <= maxHandoff {
			require.True(t, reflect.DeepEqual(whole, h))
			return
		}
		if !bytes.Contains(before, []byte(`\ufffd`)) { // what is no text at all is dropped
			require.Greater(t, len(after), maxHandoff/4, "the room is used")
		}
		all := h.All()
		wholes := slices.Collect(whole.All())
		i := 0
		for one := range all {
			was := *wholes[i]
			was.Children = one.Children
			require.True(t, pointsTo(one, one.Session) || string(mustJSON(was)) == string(mustJSON(*one)), "what is cut says where it is")
			i++
		}
	})
}

func mustJSON(h agent.Handoff) []byte {
	h.Children = nil
	b, err := json.Marshal(h)
	if err != nil {
		panic(err)
	}
	return b
}

func TestWidthIsWhatJSONTakes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawText(t, "text", 2000)
		b, err := json.Marshal(text)
		require.NoError(t, err)
		require.GreaterOrEqual(t, width(text), len(b)-2)
		most := rapid.IntRange(0, 4000).Draw(t, "most")
		b, err = json.Marshal(head(text, most))
		require.NoError(t, err)
		require.True(t, len(b)-2 <= max(most, len(cutText)) || len(text) <= len(cutText), "%q takes %d, not %d", text, len(b), most)
	})
}

// However many agents there are, and whatever a run below says that they are called, a
// handoff fits into a payload: else the run could not end.
func TestAnyTreeFitsIntoAPayload(t *testing.T) {
	whole := deepTree(10_000, 100)
	h := Truncate(whole)
	require.Less(t, len(jsonOf(t, h)), 1<<20)
	require.Len(t, agentsOf(h), maxAgents)
	require.Equal(t, "[cut here: 9000 agents below are not shown]", h.InFlight[len(h.InFlight)-1].What)
	require.Len(t, agentsOf(whole), 10_000, "what was given is not changed")

	long := strings.Repeat("x", 1<<20)
	forged := agent.Handoff{V: 1, Session: "s", Run: "r", Agent: "a", Children: []agent.Handoff{
		{Session: long, Run: long, Agent: long, Status: agent.Status(long)}, {Session: "s/a-1", Children: []agent.Handoff{{Session: long}}},
	}}
	h = Truncate(forged)
	require.LessOrEqual(t, len(jsonOf(t, h)), maxHandoff)
	require.Len(t, agentsOf(h), 4)
}
