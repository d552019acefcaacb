package render

import (
	"fmt"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

// maxSources is how many sources of one message are shown.
const maxSources = 10

// Citations returns a line for each source that a text cites, and one that counts what is not
// shown. uncited counts those that the runtime left out. All in them is from outside.
func Citations(text string, list []agent.Citation, uncited int) (lines []string) {
	type source struct {
		agent.Citation
		times int
	}
	var sources []source
	at := map[agent.Citation]int{}
	for _, c := range list {
		one := c
		one.Start, one.End, one.Text = 0, 0, ""
		if i, known := at[one]; known {
			sources[i].times++
			continue
		}
		at[one] = len(sources)
		sources = append(sources, source{c, 1})
	}
	for i, s := range sources {
		if i == maxSources {
			uncited += len(sources) - i
			break
		}
		lines = append(lines, untrusted.Sprintf("[source] %s", citation(text, s.Citation, s.times)))
	}
	if uncited > 0 {
		lines = append(lines, fmt.Sprintf("[source] %d more", uncited))
	}
	return lines
}

// citation returns a source with its place, the piece of the text that cites it, and what it says.
func citation(text string, c agent.Citation, times int) string {
	var names []string
	if c.Title != "" {
		names = append(names, untrusted.Line(c.Title, 80))
	} else if c.File != "" {
		names = append(names, "file "+untrusted.Name(c.File[:min(len(c.File), 12)]))
	}
	if place := placeOf(c); place != "" {
		names = append(names, place)
	}
	if c.URL != "" {
		names = append(names, untrusted.Line(c.URL, 200))
	}
	line := strings.Join(names, ", ")
	if c.Within(text) && c.Start < c.End {
		line += fmt.Sprintf(`, for "%s"`, untrusted.Line(text[c.Start:c.End], 40))
	}
	if times > 1 {
		line += fmt.Sprintf(" (%d times)", times)
	}
	if c.Text != "" {
		line += fmt.Sprintf(`: "%s"`, untrusted.Line(c.Text, 80))
	}
	return line
}

// placeOf returns where the source says it; empty if that is not known. Places in characters and in
// blocks are left out: a reader cannot look them up.
func placeOf(c agent.Citation) string {
	switch {
	case c.Unit != agent.CitedPages:
		return ""
	case c.To <= c.From+1:
		return fmt.Sprintf("page %d", c.From)
	}
	return fmt.Sprintf("pages %d to %d", c.From, c.To-1)
}

// citationsOf is [Citations] for a message.
func citationsOf(m *agent.Message) []string {
	uncited := 0
	for _, p := range m.Parts {
		uncited += p.Uncited
	}
	return Citations(m.Text(), m.Citations(), uncited)
}
