package handoff

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// hostile are texts that try to be more than a text.
var hostile = []string{
	"# Heading", "a\n# Heading\n## Two", "a\n---\nb\n===", "> quote\n\nout", "- item\n- item", "* * *", "___", "1. one", "22) two", "```\nfence", "~~~", "a\n```go\nb",
	"<h1>x</h1>", "</blockquote><h1>x", "<!-- all that follows", "<?php", "\\<b>", "![x](http://spy)", "\\![x](http://spy)", "[a]: http://evil", "  [a]: http://evil", "[ ] task",
	"a\r# Heading", "a\r\n\r\n# Heading", "a\u2028# Heading", "a\v# Heading", "\x1b[2Jx", "\u202egnp", "\x00# x", "+ a", "=x", "`", "#", "<", "!", "**Done**", "x ##",
}

// hostileHandoff has a text in every place where one can stand.
func hostileHandoff(text string) agent.Handoff {
	return agent.Handoff{
		V: 1, Session: text, Run: text, Agent: text, Status: agent.Status(text), Task: text, Reason: text, Summary: text,
		Done: []agent.WorkItem{{What: text, Ref: text}}, InFlight: []agent.WorkItem{{What: text}}, NotStarted: []agent.WorkItem{{What: text}}, Failed: []agent.WorkItem{{What: text}},
		OpenQuestions: []string{text}, Decisions: []string{text}, Evidence: []agent.Evidence{{Kind: text, Ref: text, Note: text}},
		Requests:       []agent.Request{{ID: text, Type: agent.RequestType(text), Text: text, Call: &agent.RequestCall{ID: text, Tool: text}}},
		UnknownEffects: []agent.UnknownEffect{{Call: text, Tool: text, Key: text, Since: text}}, SummarizedBy: agent.SummarizedBy(text),
	}
}

// skeletonOf is the structure of a page: headings, titles and entries without their texts.
func skeletonOf(page string) (out []string) {
	for _, line := range strings.Split(page, "\n") {
		switch {
		case strings.HasPrefix(line, "#"):
			line, _, _ = strings.Cut(line, " ")
		case strings.HasPrefix(line, "> "), strings.HasPrefix(line, "- "):
			line = line[:2]
		case strings.HasPrefix(line, "Session "), strings.HasPrefix(line, "Summed up "):
			line, _, _ = strings.Cut(line, " ")
		case line == ">":
			line = "> "
		}
		if line == "> " && len(out) > 0 && out[len(out)-1] == line {
			continue
		}
		out = append(out, line)
	}
	return out
}

func TestTextsCantBreakThePage(t *testing.T) {
	page := func(text string) string {
		h := hostileHandoff(text)
		h.Children = []agent.Handoff{hostileHandoff(text)}
		return Markdown(h)
	}
	want := skeletonOf(page("x"))
	block := regexp.MustCompile(`^- (?:[#>+*=_~\x60\[-]|\d+[.)])`)
	quoted := regexp.MustCompile(`^>\s*\[`)
	for _, text := range hostile {
		got := page(text)
		require.Equal(t, want, skeletonOf(got), "%q makes\n%s", text, got)
		for _, line := range strings.Split(got, "\n") {
			require.NotRegexp(t, block, line, "%q", text)
			require.NotRegexp(t, quoted, line, "%q", text)
		}
		require.NotRegexp(t, `<[a-zA-Z/!?]|!\[`, got, "%q", text)
		require.NotRegexp(t, `[\x00-\x08\x0b-\x1f\x7f]|\x{202e}|\x{2028}`, got, "%q", text)
	}
}

func TestOnlyListsWithEntriesAreShown(t *testing.T) {
	page := Markdown(Complete(agent.Handoff{Session: "s", Run: "r", Agent: "a", Status: agent.StatusStopped}, ""))
	require.NotContains(t, page, "**")
	require.NotContains(t, page, "Left:")
	require.Equal(t, 1, strings.Count(page, "#"))
}

func TestChildrenAreDepthFirst(t *testing.T) {
	h := agent.Handoff{Agent: "deepest", Status: agent.StatusCompleted}
	for _, name := range []string{"g", "f", "e", "d", "c", "b", "a"} {
		h = agent.Handoff{Agent: name, Status: agent.StatusStopped, Children: []agent.Handoff{h, {Agent: name + "2", Status: agent.StatusFailed}}}
	}
	var headings []string
	for _, line := range strings.Split(Markdown(h), "\n") {
		if strings.HasPrefix(line, "#") {
			headings = append(headings, line)
		}
	}
	require.Equal(t, []string{
		"# Handoff of a: stopped", "## 1. b: stopped", "### 1.1. c: stopped", "#### 1.1.1. d: stopped", "##### 1.1.1.1. e: stopped", "###### 1.1.1.1.1. f: stopped",
		"###### 1.1.1.1.1.1. g: stopped", "###### 1.1.1.1.1.1.1. deepest: completed", "###### 1.1.1.1.1.1.2. g2: failed", "###### 1.1.1.1.1.2. f2: failed",
		"###### 1.1.1.1.2. e2: failed", "##### 1.1.1.2. d2: failed", "#### 1.1.2. c2: failed", "### 1.2. b2: failed", "## 2. a2: failed",
	}, headings)
}

func TestBriefSaysWhatItIs(t *testing.T) {
	text := Briefing(skeleton())
	require.True(t, strings.HasPrefix(text, "This is a handoff from an earlier run, of the agent lead in the session trip-42."))
	require.True(t, strings.HasSuffix(text, "\n\n"+Markdown(skeleton())))
}

// What can't be seen, or turns the direction of writing, shows.
func TestHiddenCharactersShow(t *testing.T) {
	text := Markdown(agent.Handoff{Agent: "lead", Summary: "a\x1b[2J\u202e\u200b\u009b\ufeffb é 日本語", Decisions: []string{"p\u2066ay"}})
	require.Contains(t, text, `> a\u001b[2J\u202e\u200b\u009b\ufeffb é 日本語`)
	require.Contains(t, text, `- p\u2066ay`)
}
