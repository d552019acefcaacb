package window_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/window"
	"github.com/fermata-agents/fermata/store"
)

func said(seq int64, role agent.Role, text string) store.Entry {
	return store.Entry{Seq: seq, Message: agent.TextMessage(role, text)}
}

// turn is a call and its result.
func turn(seq int64, result string) []store.Entry {
	id := fmt.Sprintf("t%d.1", seq)
	return []store.Entry{
		{Seq: seq, Message: agent.Message{Role: agent.RoleAssistant, Parts: []agent.Part{{Type: agent.PartToolCall, Call: &agent.ToolCall{ID: id, Tool: "look"}}}}},
		{Seq: seq + 1, Message: agent.Message{Role: agent.RoleTool, Parts: []agent.Part{{Type: agent.PartToolResult, Result: &agent.ToolResult{Call: id, Tool: "look", Text: result}}}}},
	}
}

func meter(t require.TestingT) window.TokenEstimator {
	v := &store.View{}
	return window.NewTokenEstimator(v, &agent.Spec{})
}

// Whatever is asked for, calls stay with their results, and what stays fits into
// its share (HA-81).
func TestSplitTearsNoCallFromItsResult(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var entries []store.Entry
		for range rapid.IntRange(1, 30).Draw(t, "messages") {
			size := rapid.SampledFrom([]int{1, 100, 5000}).Draw(t, "size")
			if seq := int64(len(entries) + 1); rapid.Bool().Draw(t, "call") {
				entries = append(entries, turn(seq, strings.Repeat("r", size))...)
			} else {
				entries = append(entries, said(seq, agent.RoleUser, strings.Repeat("u", size)))
			}
		}
		limit := rapid.Int64Range(100, 20_000).Draw(t, "limit")
		c := agent.CompactionPolicy{KeepFirst: rapid.IntRange(0, 5).Draw(t, "first"), KeepLast: rapid.IntRange(-1, 12).Draw(t, "last")}
		m := meter(t)
		first, from := window.Split(entries, m, limit, c)
		require.LessOrEqual(t, first, from)
		require.LessOrEqual(t, from, len(entries))
		for _, at := range []int{first, from} {
			require.False(t, at > 0 && at < len(entries) && entries[at].Role == agent.RoleTool, "parted before a result, at %d", at)
		}
		require.Less(t, from, len(entries), "what is to be answered stays")
		if last := len(entries) - 1; from < last && entries[last].Role != agent.RoleTool {
			require.LessOrEqual(t, m.PartTokens(entries[from:]), limit/2+1)
		}
		require.LessOrEqual(t, m.PartTokens(entries[:first]), limit/5+1)
	})
}

func TestFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var entries []store.Entry
		for range rapid.IntRange(1, 40).Draw(t, "messages") {
			size := rapid.SampledFrom([]int{1, 600, 40_000}).Draw(t, "size")
			if seq := int64(len(entries) + 1); rapid.Bool().Draw(t, "call") {
				entries = append(entries, turn(seq, strings.Repeat("ä", size))...)
			} else {
				entries = append(entries, said(seq, agent.RoleUser, strings.Repeat("u", size)))
			}
		}
		before := window.Bytes(entries)
		room := rapid.IntRange(2000, 200_000).Draw(t, "room")
		fitted := window.Fit(entries, room)
		require.LessOrEqual(t, window.Bytes(fitted), room, "it fits")
		require.Equal(t, before, window.Bytes(entries), "the messages themselves stay")
		require.NotEqual(t, agent.RoleTool, fitted[0].Role, "no result without its call")
		require.Equal(t, entries[len(entries)-1].Seq, fitted[len(fitted)-1].Seq, "the newest stays")
	})
}

func TestWhatIsCutSaysSo(t *testing.T) {
	text := "the beginning " + strings.Repeat("x", 10_000) + " the end"
	fitted := window.Fit([]store.Entry{said(1, agent.RoleUser, text)}, 3000)
	got := fitted[0].Text()
	require.Less(t, len(got), 3000)
	require.True(t, strings.HasPrefix(got, "the beginning "))
	require.True(t, strings.HasSuffix(got, " the end"))
	require.Contains(t, got, "bytes are left out here")

	cites := said(1, agent.RoleAssistant, text)
	cites.Parts[0].Raw = json.RawMessage(`[{"start_index":9000}]`)
	require.Empty(t, window.Fit([]store.Entry{cites}, 3000)[0].Parts[0].Raw, "it says where it stands in the text")
	step := said(1, agent.RoleAssistant, "")
	step.Parts[0] = agent.Part{Type: agent.PartServerTool, Text: "web_search", Raw: json.RawMessage(`"` + strings.Repeat("x", 10_000) + `"`)}
	fitted = window.Fit([]store.Entry{step}, 3000)
	require.Less(t, window.Bytes(fitted), 3000)
	require.Equal(t, "web_search", fitted[0].Parts[0].Text)
}

// The meter believes what the model has counted, within reason.
func TestMeterLearnsFromTheLastTurn(t *testing.T) {
	text := strings.Repeat("word ", 4000)
	first := agent.TextMessage(agent.RoleUser, text)
	spec := &agent.Spec{}
	log := func(counted int64) *store.View {
		events := []agent.Event{
			{Seq: 1, Type: agent.EventRunStarted, Started: &agent.Started{Run: "r", Spec: spec}}, {Seq: 2, Type: agent.EventMessage, Message: &first},
			{Seq: 3, Type: agent.EventTurnStarted}, {Seq: 4, Type: agent.EventTurnEnded, Snapshot: &agent.TurnSnapshot{Usage: agent.Usage{Input: 3 * counted}, Request: counted}},
		}
		return (&store.View{}).With(events, 4)
	}
	tokens := func(counted int64) int64 {
		v := log(counted)
		return window.NewTokenEstimator(v, spec).Tokens(v.Entries())
	}
	require.InDelta(t, 8000, tokens(8000), 10)
	require.InDelta(t, 20_000/4, tokens(10), 100, "a count that can't be is not believed")
	require.InDelta(t, 20_000/3, tokens(0), 100, "nor is none")
}

func TestLimitLeavesRoomForTheReply(t *testing.T) {
	require.Zero(t, window.Limit(&agent.Spec{}))
	require.Equal(t, int64(90_000), window.Limit(&agent.Spec{Window: 100_000}))
	require.Equal(t, int64(92_000), window.Limit(&agent.Spec{Window: 100_000, MaxOutput: 8000}))
	require.Equal(t, int64(50_000), window.Limit(&agent.Spec{Window: 100_000, MaxOutput: 200_000}))
}

// A summary only names its files, so they count little and stay.
func TestFilesOfASummaryFit(t *testing.T) {
	summary := said(1, agent.RoleUser, "summed up")
	summary.Note = agent.NoteSummary
	for range 20 {
		summary.Parts = append(summary.Parts, agent.Part{Type: agent.PartFile, File: &agent.File{Session: "s", Size: agent.MaxFile, MediaType: "application/pdf"}})
	}
	all := append([]store.Entry{summary}, turn(2, strings.Repeat("r", 20_000))...)
	require.Less(t, window.Bytes(all[:1]), 5000)
	fitted := window.Fit(all, 12_000)
	require.Len(t, fitted, 3)
	require.Len(t, fitted[0].Files(), 20)
	require.LessOrEqual(t, window.Bytes(fitted), 12_000)
}

// A file counts as its model is charged for it. Where that is too much, what is known of it stays.
func TestAFileThatDoesNotFitIsDescribed(t *testing.T) {
	report := agent.Part{Type: agent.PartFile, Text: "the sales", File: &agent.File{Session: "s", Size: agent.MaxFile, MediaType: "application/pdf", Name: "report.pdf"}}
	all := append([]store.Entry{{Seq: 1, Message: agent.Message{Role: agent.RoleUser, Parts: []agent.Part{report}}}}, turn(2, strings.Repeat("r", 4000))...)
	all[2].Parts[0].Result.Files = []agent.Part{report}
	const room = 8000
	fitted := window.Fit(all, room)
	require.Len(t, fitted, 3)
	require.LessOrEqual(t, window.Bytes(fitted), room)
	const want = "[report.pdf (application/pdf, 20971520 bytes): it is left out, to fit the model's window]\nthe sales"
	require.Equal(t, want, fitted[0].Text())
	r := fitted[2].Parts[0].Result
	require.True(t, strings.HasPrefix(r.Text, "rrr") && strings.HasSuffix(r.Text, "\n"+want), r.Text)
	require.Empty(t, r.Files)
	require.Len(t, all[2].Files(), 1, "the messages themselves stay")
	require.Len(t, window.Fit(all, 1<<20), 3)
	require.Len(t, window.Fit(all, 1<<20)[2].Files(), 1)
}
