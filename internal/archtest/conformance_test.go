package archtest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite docs/conformance.md")

const (
	promisesDir = "../../docs/conformance"
	conformance = "../../docs/conformance.md"
)

// families are the five lists of promises, in the page's order.
var families = []struct{ id, title string }{
	{"HL", "Holding: suspend, resume, stop, park"},
	{"OA", "Suspensions, sessions and checkpoints"},
	{"HX", "Runs: start, interrupt, retry, fork, stream"},
	{"HA", "The loop: limits, context, agents below"},
	{"PA", "Questions, approvals and failures"},
}

// promise is one row of docs/conformance.
type promise struct {
	id, mark string
	text     string
	state    string // "changed", "declined", "missing", or nothing
	reason   string
	tests    []proof
}

// topic is a group of rows.
type topic struct {
	title string
	rows  []*promise
}

// outcome is how the page counts a row.
func (p *promise) outcome() string {
	switch {
	case p.state != "":
		return p.state
	case len(p.tests) > 0:
		return "proven"
	}
	return "missing"
}

// fault is what a row lacks, or nothing.
func (p *promise) fault(family string) string {
	where := "docs/conformance/" + family + ".txt"
	switch {
	case p.state == "changed" && len(p.tests) == 0:
		return fmt.Sprintf("%s is changed and has no test: name it in the comment of the test that proves what is built", p.id)
	case p.state == "declined" && p.mark != "niche" && !decision.MatchString(p.reason):
		return fmt.Sprintf("%s is %s: name the decision that declines it in %s, or call it missing", p.id, p.mark, where)
	case p.state == "" && p.mark == "core" && len(p.tests) == 0:
		return fmt.Sprintf("%s has no test: name it in the comment of the test that proves it, or say under it in %s why it is declined or missing (%s)", p.id, where, p.text)
	}
	return ""
}

var (
	rowLine   = regexp.MustCompile(`^([A-Z]{2})-(\d{2,3}) (core|valuable|niche): (\S.*\.)$`)
	stateLine = regexp.MustCompile(`^    (changed|declined|missing): (\S.*)$`)
)

// promises reads a family's file: "# Topic" before each group, a row a line, and
// indented under a row why it is built otherwise or not at all. Rows count from 1
// without a gap.
func promises(family, text string) (topics []topic, err error) {
	var last *promise
	n := 0
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		where := fmt.Sprintf("docs/conformance/%s.txt:%d", family, i+1)
		row, state := rowLine.FindStringSubmatch(line), stateLine.FindStringSubmatch(line)
		title, isTopic := strings.CutPrefix(line, "# ")
		switch {
		case isTopic:
			topics, last = append(topics, topic{title: title}), nil
		case row != nil && len(topics) > 0:
			if n++; fmt.Sprintf("%s-%02d", family, n) != row[1]+"-"+row[2] {
				return nil, fmt.Errorf("%s: %s-%s stands where %s-%02d belongs", where, row[1], row[2], family, n)
			}
			last = &promise{id: row[1] + "-" + row[2], mark: row[3], text: row[4]}
			group := &topics[len(topics)-1]
			group.rows = append(group.rows, last)
		case state != nil && last != nil && last.state == "":
			last.state, last.reason = state[1], state[2]
		case line != "":
			return nil, fmt.Errorf("%s: neither a topic, a row, nor the state of the row above: %q", where, line)
		}
	}
	return topics, nil
}

// Every core row has a test that carries its id, or says why it has none; a row that
// is built otherwise has both; and docs/conformance.md shows it: -update writes the page.
func TestConformance(t *testing.T) {
	all := map[string]*promise{}
	groups := map[string][]topic{}
	for _, f := range families {
		data, err := os.ReadFile(filepath.Join(promisesDir, f.id+".txt"))
		if err != nil {
			t.Error(err)
			continue
		}
		topics, err := promises(f.id, string(data))
		if err != nil {
			t.Error(err)
			continue
		}
		groups[f.id] = topics
		for _, g := range topics {
			for _, p := range g.rows {
				all[p.id] = p
			}
		}
	}
	for _, fault := range slices.Concat(claim(all, proofs(t)), lacking(groups)) {
		t.Error(fault)
	}
	want, err := page(groups)
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(conformance, []byte(want), 0o644))
	}
	have, err := os.ReadFile(conformance)
	require.NoError(t, err)
	if string(have) != want {
		t.Error("docs/conformance.md is out of date: run go test ./internal/archtest -run Conformance -update")
	}
}

// claim gives each row its tests, and tells of ids that are none.
func claim(all map[string]*promise, found []proof) (faults []string) {
	for _, f := range found {
		if f.fault != "" {
			faults = append(faults, fmt.Sprintf("%s: %s", f.where, f.fault))
			continue
		}
		for _, id := range f.ids {
			p := all[id]
			switch {
			case p == nil:
				faults = append(faults, fmt.Sprintf("%s: %s has no row in docs/conformance: correct the id", f.where, id))
			case p.state == "missing":
				faults = append(faults, fmt.Sprintf("%s: %s is marked %q in docs/conformance: take the mark away, or the id from the comment", f.where, id, p.state))
			case !slices.ContainsFunc(p.tests, func(o proof) bool { return o.name == f.name && o.path == f.path }):
				p.tests = append(p.tests, f)
			}
		}
	}
	return faults
}

// lacking tells of rows that lack a test, a reason or a decision.
func lacking(groups map[string][]topic) (faults []string) {
	for _, f := range families {
		for _, g := range groups[f.id] {
			for _, p := range g.rows {
				if fault := p.fault(f.id); fault != "" {
					faults = append(faults, fault)
				}
			}
		}
	}
	return faults
}

// A file of promises is told where it is wrong.
func TestConformanceRows(t *testing.T) {
	const head = "# One\nHL-01 core: It ends.\n"
	for text, want := range map[string]string{
		"HL-01 core: It ends.\n":                     "HL.txt:1: neither",
		head + "HL-03 core: It rests.\n":             "HL.txt:3: HL-03 stands where HL-02 belongs",
		head + "OA-02 core: It rests.\n":             "HL.txt:3: OA-02 stands where HL-02 belongs",
		head + "HL-02 some: It rests.\n":             "HL.txt:3: neither",
		head + "HL-02 core: It rests\n":              "HL.txt:3: neither",
		head + "    changed: so.\n    declined: no.": "HL.txt:4: neither",
		head + "    changed\n":                       "HL.txt:3: neither",
		head + "    undecided: yes\n":                "HL.txt:3: neither",
	} {
		_, err := promises("HL", text)
		require.ErrorContains(t, err, want, text)
	}
	topics, err := promises("HL", head+"    declined: it rests\n# Two\nHL-02 niche: It rests.\n    missing: no clock\nHL-03 core: It goes.\n    changed: it walks\n")
	require.NoError(t, err)
	require.Equal(t, []topic{
		{"One", []*promise{{id: "HL-01", mark: "core", text: "It ends.", state: "declined", reason: "it rests"}}},
		{"Two", []*promise{
			{id: "HL-02", mark: "niche", text: "It rests.", state: "missing", reason: "no clock"},
			{id: "HL-03", mark: "core", text: "It goes.", state: "changed", reason: "it walks"},
		}},
	}, topics)
}

// A claim that is wrong is told.
func TestConformanceClaims(t *testing.T) {
	rows := parsed(t, "HL-01 core: It ends.\nHL-02 core: It rests.\nHL-03 niche: It sings.\n    missing: no voice\n")
	all := map[string]*promise{}
	for _, p := range rows {
		all[p.id] = p
	}
	require.Equal(t, []string{
		"a_test.go:1: HL-99 has no row in docs/conformance: correct the id",
		`a_test.go:1: HL-03 is marked "missing" in docs/conformance: take the mark away, or the id from the comment`,
		"a_test.go:9: unclear",
	}, claim(all, []proof{
		{name: "TestA", where: "a_test.go:1", ids: []string{"HL-01", "HL-99", "HL-03", "HL-01"}},
		{where: "a_test.go:9", fault: "unclear"},
	}))
	require.Len(t, rows[0].tests, 1)
}

// A core row without a test or a reason, a changed row without a test, and a row
// above niche that is declined without a decision are told.
func TestConformanceLacks(t *testing.T) {
	for text, want := range map[string]string{
		"HL-01 core: It ends.\n":                                      "HL-01 has no test",
		"HL-01 core: It ends.\n    missing: no end\n":                 "",
		"HL-01 core: It ends.\n    declined: decision 0004: no end\n": "",
		"HL-01 core: It ends.\n    declined: no end\n":                "HL-01 is core: name the decision",
		"HL-01 valuable: It ends.\n    declined: no end\n":            "HL-01 is valuable: name the decision",
		"HL-01 niche: It ends.\n    declined: no end\n":               "",
		"HL-01 niche: It ends.\n":                                     "",
		"HL-01 niche: It ends.\n    changed: it stops\n":              "HL-01 is changed and has no test",
	} {
		got := parsed(t, text)[0].fault("HL")
		require.Equal(t, want == "", got == "", "%s: %s", text, got)
		require.Contains(t, got, want)
	}
}

// parsed reads the rows of one topic.
func parsed(t *testing.T, rows string) []*promise {
	t.Helper()
	topics, err := promises("HL", "# One\n"+rows)
	require.NoError(t, err)
	return topics[0].rows
}
