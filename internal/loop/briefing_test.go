package loop

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/remembered"
)

// However a build words what it says of a briefing: the run decides alike, also whether a
// start is one that was heard before.
func TestNoWordingOfABriefingDecides(t *testing.T) {
	plays := func(brief string, receipts []remembered.Receipt) State {
		p := &player{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
		p.step(Begin{Session: "s", Run: "r", BriefingText: brief, Start: agent.Start{
			Agent: "a", ID: "m-1", Carry: agent.CarryCompact, Input: agent.Input{Briefing: &agent.Handoff{Session: "old", Summary: strings.Repeat("x", 200<<10)}},
		}})
		in := p.input("opened", "").(Opened)
		in.Head, in.Seq, in.Receipts = "old", 9, receipts
		p.step(in)
		return p.state
	}
	sparse, verbose := plays("Go on.", nil), plays(strings.Repeat("Go on, and take your time. ", 12_000), nil)
	require.Equal(t, RunActive, verbose.Phase, "it is not too long to wait")
	require.Equal(t, sparse.Messages.Receipts, verbose.Messages.Receipts)
	require.Equal(t, sparse.Messages.PendingSize, verbose.Messages.PendingSize)
	require.Equal(t, sparse.Log.Bytes, verbose.Log.Bytes)

	again := plays("Carry on.", sparse.Messages.Receipts)
	require.Equal(t, agent.CodeStale, again.End.Outcome.Error.Code, "it is the same start")
}

// A briefing counts whatever its text has: a handoff may name thousands of artifacts.
func TestABriefingCountsItsArtifacts(t *testing.T) {
	sizes := func(h *agent.Handoff) (bytes, size int) {
		o := Origin{Start: &agent.Start{Input: agent.Input{Briefing: h}}}
		return o.bytes(), o.size()
	}
	h := &agent.Handoff{Session: "s", Agent: "a"}
	bytes, size := sizes(h)
	a := agent.Artifact{File: contentFile(strings.Repeat("s", 60), strings.Repeat("n", 100), "x"), Version: 1, Call: "t1.1"}
	for range 500 {
		h.Artifacts = append(h.Artifacts, a)
	}
	moreBytes, moreSize := sizes(h)
	line := len("- ") + len(a.String()) + len(", of session , call \n") + len(a.Session) + len(a.Call) // as handoff.Briefing writes it
	require.GreaterOrEqual(t, moreBytes-bytes, 500*line)
	require.GreaterOrEqual(t, moreSize-size, 500*line)
}

// A briefing is no longer in a state than it counts.
func TestABriefingIsNoLongerThanItCounts(t *testing.T) {
	text := rapid.StringOf(rapid.SampledFrom([]rune("\n\r\t\v<![a# \u2028&\"\\")))
	rapid.Check(t, func(t *rapid.T) {
		said := text.Draw(t, "text")
		quoted, err := json.Marshal("> " + strings.NewReplacer("\n", "\n> ", "\r", "\n> ", "\v", "\n> ", "\u2028", "\n> ", "<", "&lt;", "!", `!\`).Replace(said))
		require.NoError(t, err)
		require.LessOrEqual(t, len(quoted), quotedJSONLen(said))
	})
}
