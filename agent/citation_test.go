package agent_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// A citation is about a piece of its text that cuts no character, or a point of it, and has a
// source that people may follow.
func TestCitationCheck(t *testing.T) {
	const text = "Grüße 🌞"
	page := agent.Citation{End: 7, URL: "https://a.example/ü?q=1#x"}
	require.Nil(t, page.Check(text))
	for _, good := range []agent.Citation{
		{Start: 12, End: 12, Title: "A"}, {Start: 8, End: 12, File: strings.Repeat("0a", 32)},
		{Title: "A", Unit: agent.CitedPages, From: 1, To: 2}, {Title: "A", Unit: agent.CitedChars, To: 1}, {URL: "http://a.example:8080/"},
	} {
		require.Nil(t, good.Check(text), "%+v", good)
	}
	for path, list := range map[string][]agent.Citation{
		"start": {{Start: 7, End: 6, Title: "A"}, {Start: -1, End: 1, Title: "A"}, {End: 13, Title: "A"}, {Start: 3, End: 4, Title: "A"}, {End: 9, Title: "A"}},
		"url":   {{URL: "javascript:alert(1)"}, {URL: "//a.example"}, {URL: "https://"}, {URL: "https://u@a.example"}, {URL: "https://a.example/\x1b"}, {URL: "https://a.example/ b"}, {URL: "https://a.example/\xff"}, {URL: "https://a.example/" + strings.Repeat("x", agent.MaxCitedURL)}},
		"file":  {{File: "x"}},
		"title": {{}, {Title: " "}, {Title: strings.Repeat("x", agent.MaxCitedTitle+1)}, {Title: "A", Text: strings.Repeat("x", agent.MaxCitedText+1)}},
		"unit":  {{Title: "A", Unit: "line", To: 1}, {Title: "A", Unit: agent.CitedPages, To: 1}, {Title: "A", Unit: agent.CitedBlocks, From: 2, To: 2}},
	} {
		for _, c := range list {
			err := c.Check(text)
			require.NotNil(t, err, "%+v", c)
			require.Equal(t, path, err.Path, "%+v", c)
		}
	}
}

// The citations of a message are those of its texts, in the joined text.
func TestMessageCitations(t *testing.T) {
	m := agent.Message{Parts: []agent.Part{
		{Type: agent.PartThinking, Text: "Hm.", Citations: []agent.Citation{{End: 3, Title: "no text"}}},
		{Type: agent.PartText, Text: "Grüße. ", Citations: []agent.Citation{{End: 7, Title: "A"}, {End: 99, Title: "outside"}}},
		{Type: agent.PartToolCall, Call: &agent.ToolCall{}},
		{Type: agent.PartText, Text: "Rom.", Citations: []agent.Citation{{End: 3, Title: "B"}}},
	}}
	list := m.Citations()
	require.Equal(t, []agent.Citation{{End: 7, Title: "A"}, {Start: 9, End: 12, Title: "B"}}, list)
	require.Equal(t, "Rom", m.Text()[list[1].Start:list[1].End])
	require.Nil(t, agent.TextMessage(agent.RoleAssistant, "x").Citations())
	require.Equal(t, len("x"), agent.TextMessage("", "x").Size(), "a text without citations costs no more")
}

func TestCitationFit(t *testing.T) {
	c := agent.Citation{Title: strings.Repeat("ü", 1000), Text: "a\xffb", Unit: agent.CitedPages, From: 4, To: 2}.Fit()
	require.LessOrEqual(t, len(c.Title), agent.MaxCitedTitle)
	require.True(t, strings.HasSuffix(c.Title, "ü…"))
	require.Equal(t, "a\uFFFDb", c.Text)
	require.Zero(t, c.Unit)
	require.Zero(t, c.From+c.To)
}
