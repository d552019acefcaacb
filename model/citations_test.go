package model_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// However many citations come, few are kept, and the others are counted.
func TestCitationsAreBounded(t *testing.T) {
	var c model.Citations[int]
	for i := range 100_000 {
		c.Add(i%2, agent.Citation{URL: fmt.Sprintf("https://a.example/%d", i), Text: strings.Repeat("x", 1000)})
	}
	require.True(t, c.Full())
	p := agent.Part{Type: agent.PartText, Text: "x"}
	c.Cite(0, &p, nil)
	require.Len(t, p.Citations, agent.MaxCitations)
	require.Equal(t, 50_000, len(p.Citations)+p.Uncited)
	require.LessOrEqual(t, agent.CitationsSize(p.Citations), agent.MaxCitationSize+64*agent.MaxCitations)

	other := agent.Part{Type: agent.PartText, Text: "y"}
	c.Cite(1, &other, nil)
	parts := model.FitCitations([]agent.Part{p, other})
	require.Len(t, parts[0].Citations, agent.MaxCitations)
	require.Empty(t, parts[1].Citations, "a message has no more")
	require.Equal(t, 50_000, parts[1].Uncited)
	require.Len(t, other.Citations, agent.MaxCitations, "the part itself stays")
}

// Parts with nothing but citations that are left out cost nothing after the first ones. All are counted.
func TestCitationsOfVeryManyParts(t *testing.T) {
	const n = 10_000
	var c model.Citations[int]
	for i := range n {
		c.Add(i, agent.Citation{})
	}
	next := n
	require.Zero(t, testing.AllocsPerRun(n, func() { next++; c.Add(next, agent.Citation{}) }))
	c.Add(n, agent.Citation{Title: "A"})
	list, uncited := 0, n-next
	for i := range next {
		thought, p := agent.Part{Type: agent.PartThinking}, agent.Part{Type: agent.PartText, Text: "x"}
		c.Cite(-1, &thought, nil)
		require.Zero(t, thought.Uncited, "it cites nothing")
		c.Cite(i, &p, nil)
		list, uncited = list+len(p.Citations), uncited+p.Uncited
	}
	require.Equal(t, 1, list)
	require.Equal(t, n, uncited)

	c = model.Citations[int]{}
	for i := range n {
		c.Add(i, agent.Citation{})
	}
	c.Add(n, agent.Citation{Title: "A"})
	out := c.CiteAll(n, []agent.Part{{Type: agent.PartText, Text: "x"}}, model.ByBytes)
	require.Len(t, out[0].Citations, 1)
	require.Equal(t, n-4*agent.MaxCitations, out[0].Uncited, "those of the other parts are theirs")
}

// What a provider counts becomes bytes.
func TestSpans(t *testing.T) {
	const text = "aü🌞z"
	for at, want := range map[int]int{-1: -1, 0: 0, 1: 1, 2: 3, 3: 7, 4: 8, 5: -1, 1 << 40: -1} {
		start, end := model.ByCharacters(text, at, at)
		require.Equal(t, [2]int{want, want}, [2]int{start, end}, "character %d", at)
	}
	start, end := model.ByBytes(text, 1, 3)
	require.Equal(t, "ü", text[start:end])
}

// Places in the joined text become those of a part; the reply's parts may have others between.
func TestCiteAll(t *testing.T) {
	parts := []agent.Part{{Type: agent.PartThinking, Text: "Hm."}, {Type: agent.PartText, Text: "One. "}, {Type: agent.PartToolCall}, {Type: agent.PartText, Text: "Two."}}
	var c model.Citations[string]
	for name, span := range map[string][2]int{"first": {0, 4}, "second": {5, 8}, "over both": {3, 7}, "end": {9, 9}, "outside": {8, 10}, "reversed": {4, 1}} {
		c.Add("all", agent.Citation{Title: name, Start: span[0], End: span[1]})
	}
	out := c.CiteAll("all", parts, model.ByBytes)
	require.ElementsMatch(t, []agent.Citation{{Title: "first", End: 4}, {Title: "over both", Start: 3, End: 5}}, out[1].Citations)
	require.ElementsMatch(t, []agent.Citation{{Title: "second", End: 3}, {Title: "end", Start: 4, End: 4}}, out[3].Citations)
	require.Equal(t, 2, out[1].Uncited)
	require.Empty(t, parts[1].Citations, "the parts themselves stay")
	require.Empty(t, c.CiteAll("none", nil, model.ByBytes))
	require.Empty(t, c.CiteAll("all", []agent.Part{{Type: agent.PartThinking, Text: "Hm."}}, model.ByBytes)[0].Citations)
}

// A reply without citations is returned as it is.
func TestFitCitationsWithout(t *testing.T) {
	parts := []agent.Part{{Type: agent.PartText, Text: "x"}}
	require.Same(t, &parts[0], &model.FitCitations(parts)[0])
	require.Empty(t, model.FitCitations(nil))
	parts[0].Uncited = -5
	require.Zero(t, model.FitCitations(parts)[0].Uncited)
}
