package archtest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const pageHead = `# Conformance

<!-- Written by go test ./internal/archtest -run Conformance -update. The rows are in docs/conformance, the proofs in the comments of the tests. -->

What Fermata promises, row by row, and the test that proves it. CI fails if a core row has neither a test nor a reason, if a changed row has no test, if a core or valuable row is declined without a decision, if a test names a row that does not exist, or if this page is out of date.

`

const pageKey = `
*Core* is what every user of such a runtime needs, *valuable* what most would miss, *niche* what few ask for.

- **Proven**: a test shows what the row says.
- **Changed**: Fermata does otherwise. The last column says what it does instead and why; the test proves what is built.
- **Declined**: Fermata leaves it out on purpose.
- **Missing**: nothing does it yet, or no test proves it.

An X-number is a question on which the sources of these rows contradict each other. [Decision 0071](decisions/0071-rows-that-contradict.md) lists those from X-29 on, and what the other rows leave open.
`

var (
	decision = regexp.MustCompile(`\bdecision (\d{4})\b`)
	question = regexp.MustCompile(`\bX-(\d+)\b`)
)

// page is docs/conformance.md.
func page(groups map[string][]topic) (string, error) {
	var b strings.Builder
	b.WriteString(pageHead)
	sums(&b, groups)
	b.WriteString(pageKey)
	for _, f := range families {
		fmt.Fprintf(&b, "\n## %s. %s\n", f.id, f.title)
		for _, g := range groups[f.id] {
			fmt.Fprintf(&b, "\n### %s\n\n| row | mark | promise | status | proof | changed, declined or missing: why |\n|---|---|---|---|---|---|\n", g.title)
			for _, p := range g.rows {
				why, err := linked(p.reason)
				if err != nil {
					return "", fmt.Errorf("%s: %w", p.id, err)
				}
				fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", p.id, p.mark, cell(p.text), p.outcome(), links(p.tests), why)
			}
		}
	}
	return b.String(), nil
}

// sums writes how many rows there are, and what became of them.
func sums(b *strings.Builder, groups map[string][]topic) {
	b.WriteString("| | rows | proven | changed | declined | missing |\n|---|---|---|---|---|---|\n")
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
		fmt.Fprintf(b, "| %s | %d | %d | %d | %d | %d |\n", mark, n["rows"], n["proven"], n["changed"], n["declined"], n["missing"])
	}
}

// links are a row's tests as the page shows them.
func links(tests []proof) string {
	parts := make([]string, len(tests))
	for i, t := range tests {
		parts[i] = fmt.Sprintf("[%s](../%s)", t.name, t.path)
	}
	return strings.Join(parts, "<br>")
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
	topics, err := promises("HL", "# Ends\nHL-01 core: It ends.\nHL-02 core: It rests|sleeps.\n    declined: decision 0004\nHL-03 niche: It hums.\nHL-04 core: It goes.\n    changed: it walks\n")
	require.NoError(t, err)
	topics[0].rows[0].tests = []proof{{name: "TestA", path: "a/a_test.go"}, {name: "TestB", path: "b/b_test.go"}}
	topics[0].rows[3].tests = topics[0].rows[0].tests[:1]
	got, err := page(map[string][]topic{"HL": topics})
	require.NoError(t, err)
	for _, line := range []string{
		"| core | 3 | 1 | 1 | 1 | 0 |",
		"| niche | 1 | 0 | 0 | 0 | 1 |",
		"### Ends",
		"| HL-01 | core | It ends. | proven | [TestA](../a/a_test.go)<br>[TestB](../b/b_test.go) |  |",
		`| HL-02 | core | It rests\|sleeps. | declined |  | [decision 0004](decisions/0004-the-loop.md) |`,
		"| HL-03 | niche | It hums. | missing |  |  |",
		"| HL-04 | core | It goes. | changed | [TestA](../a/a_test.go) | it walks |",
	} {
		require.Contains(t, got, line+"\n")
	}
	topics[0].rows[1].reason = "decision 4711"
	_, err = page(map[string][]topic{"HL": topics})
	require.ErrorContains(t, err, "HL-02: there is no decision 4711")
}

// The questions that decision 0071 adds are those that rows name (X-29 and up), each speaks of the rows
// that name it, and all rows in it exist. A core row that is built otherwise names a question, or the
// decision says what the row leaves open.
func TestQuestionsOfRows(t *testing.T) {
	text, err := os.ReadFile("../../docs/decisions/0071-rows-that-contradict.md")
	require.NoError(t, err)
	questions, leftOpen, found := strings.Cut(string(text), "## What the rows leave open")
	require.True(t, found)
	asked, inRows := map[string]string{}, map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\| X-(\d+): .*$`).FindAllStringSubmatch(questions, -1) {
		asked[m[1]] = m[0]
	}
	rows := map[string]bool{}
	for _, f := range families {
		data, err := os.ReadFile(filepath.Join(promisesDir, f.id+".txt"))
		require.NoError(t, err)
		topics, err := promises(f.id, string(data))
		require.NoError(t, err)
		for _, g := range topics {
			for _, p := range g.rows {
				rows[p.id] = true
				named := question.FindAllStringSubmatch(p.reason, -1)
				for _, m := range named {
					if number(m[1]) > 28 {
						inRows[m[1]] = true
						require.Contains(t, asked[m[1]], p.id, "decision 0071 on X-%s", m[1])
					}
				}
				if p.mark == "core" && p.reason != "" && len(named) == 0 {
					require.Contains(t, leftOpen, p.id, "the reason of %s names no question", p.id)
				}
			}
		}
	}
	require.NotEmpty(t, asked)
	require.Len(t, inRows, len(asked), "each question is named by a row")
	ids, fault := named(string(text))
	require.Empty(t, fault)
	for _, id := range ids {
		require.True(t, rows[id], id)
	}
}
