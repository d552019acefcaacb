package archtest

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const pageHead = `# Conformance

<!-- Written by go test ./internal/archtest -run Conformance -update. The rows are in docs/conformance, the proofs in the comments of the tests. -->

What Fermata promises, row by row, and the test that proves it. CI fails where a core row has neither a test nor a reason, where a test names a row that does not exist, and where this page is out of date.

`

var decision = regexp.MustCompile(`\bdecision (\d{4})\b`)

// page is docs/conformance.md.
func page(groups map[string][]topic) (string, error) {
	var b strings.Builder
	b.WriteString(pageHead)
	sums(&b, groups)
	b.WriteString("\n*Core* is what every user of such a runtime needs, *valuable* what most would miss, *niche* what few ask for. *Declined* rows say why, and X-numbers there are questions on which the sources contradict each other, settled in one way; *graph* rows speak of graphs of nodes, which Fermata does not have.\n")
	for _, f := range families {
		fmt.Fprintf(&b, "\n## %s. %s\n", f.id, f.title)
		for _, g := range groups[f.id] {
			fmt.Fprintf(&b, "\n### %s\n\n| row | mark | promise | proof |\n|---|---|---|---|\n", g.title)
			for _, p := range g.rows {
				last, err := proven(p)
				if err != nil {
					return "", err
				}
				fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", p.id, p.mark, cell(p.text), last)
			}
		}
	}
	return b.String(), nil
}

// sums writes how many rows there are, and what became of them.
func sums(b *strings.Builder, groups map[string][]topic) {
	b.WriteString("| | rows | proven | declined | graph | later or not yet |\n|---|---|---|---|---|---|\n")
	for _, mark := range []string{"core", "valuable", "niche"} {
		n := map[string]int{}
		for _, f := range families {
			for _, g := range groups[f.id] {
				for _, p := range g.rows {
					if p.mark == mark {
						n["rows"]++
						n[p.outcome()]++
					}
				}
			}
		}
		fmt.Fprintf(b, "| %s | %d | %d | %d | %d | %d |\n", mark, n["rows"], n["proven"], n["declined"], n["graph"], n["later"]+n["not yet"])
	}
}

// proven is what the page shows as a row's proof: links to its tests, or why there
// are none.
func proven(p *promise) (string, error) {
	var parts []string
	if p.state != "" {
		reason, err := linked(p.reason)
		if err != nil {
			return "", fmt.Errorf("%s: %w", p.id, err)
		}
		parts = append(parts, strings.TrimSuffix("*"+p.state+"*: "+reason, ": "))
	}
	for _, t := range p.tests {
		parts = append(parts, fmt.Sprintf("[%s](../%s)", t.name, t.path))
	}
	if parts == nil {
		return "*not yet*", nil
	}
	return strings.Join(parts, "<br>"), nil
}

// linked makes links of the decisions that a reason names.
func linked(reason string) (string, error) {
	var err error
	out := decision.ReplaceAllStringFunc(cell(reason), func(word string) string {
		number := decision.FindStringSubmatch(word)[1]
		found, globErr := filepath.Glob("../../docs/decisions/" + number + "-*.md")
		if globErr != nil || len(found) != 1 {
			err = fmt.Errorf("there is no decision %s", number)
			return word
		}
		return fmt.Sprintf("[%s](decisions/%s)", word, filepath.Base(found[0]))
	})
	return out, err
}

// cell is a text that stands in a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// The page shows each row once, with its tests or its reason.
func TestConformancePage(t *testing.T) {
	topics, err := promises("HL", "# Ends\nHL-01 core: It ends.\nHL-02 core: It rests|sleeps.\n    declined: decision 0004\nHL-03 niche: It hums.\n")
	require.NoError(t, err)
	topics[0].rows[0].tests = []proof{{name: "TestA", path: "a/a_test.go"}, {name: "TestB", path: "b/b_test.go"}}
	got, err := page(map[string][]topic{"HL": topics})
	require.NoError(t, err)
	for _, line := range []string{
		"| core | 2 | 1 | 1 | 0 | 0 |",
		"| niche | 1 | 0 | 0 | 0 | 1 |",
		"### Ends",
		"| HL-01 | core | It ends. | [TestA](../a/a_test.go)<br>[TestB](../b/b_test.go) |",
		`| HL-02 | core | It rests\|sleeps. | *declined*: [decision 0004](decisions/0004-the-loop.md) |`,
		"| HL-03 | niche | It hums. | *not yet* |",
	} {
		require.Contains(t, got, line+"\n")
	}
	topics[0].rows[1].reason = "decision 4711"
	_, err = page(map[string][]topic{"HL": topics})
	require.ErrorContains(t, err, "HL-02: there is no decision 4711")
}
