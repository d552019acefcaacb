package eval

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite/eval/grade"
)

// put writes a file, packed if its name ends in .gz.
func put(t *testing.T, dir, name, text string) {
	t.Helper()
	raw := []byte(text)
	if strings.HasSuffix(name, ".gz") {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, err := w.Write(raw)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		raw = b.Bytes()
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), raw, 0o600))
}

// The forms of published sets become cases: questions with an answer at the end of a text,
// chat messages with an ideal answer, code with a test, lists in a document, and tables.
func TestCasesFrom(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "math.jsonl", "\uFEFF{\"question\": \"Half of 48?\", \"answer\": \"It is 48/2.\\n#### 24\"}\n\n{\"question\": \"A (b)?\", \"answer\": \"#### 1.5\"}\n")
	put(t, dir, "chat.jsonl.gz", `{"input": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "2+2?"}], "ideal": "4", "n": 9007199254740993}`+"\n")
	put(t, dir, "code.jsonl", `{"task_id": "Code/0", "prompt": "def add(a, b):", "test": "assert add(1, 2) == {{3}}", "entry": "add"}`+"\n")
	put(t, dir, "skill.json", `{"evals": [{"id": "top", "prompt": "Which?", "files": ["a.csv", "b.csv"], "assertions": ["A", "B"]}]}`)
	put(t, dir, "table.csv", "q, a\n\"Two\nlines?\",yes\nOne?,no\n")
	put(t, dir, "list.yaml", "- {q: x, a: y}\n")
	for _, c := range []struct {
		from string
		want []Case
	}{
		{`{file: math.jsonl, case: {input: "{{question}}", graders: [{contains: ['{{answer | after "####"}}']}, {regex: '{{answer | after #### | quote}}$'}]}}`, []Case{
			{Name: "line-1", Input: json.RawMessage(`"Half of 48?"`), Graders: []grade.Spec{{Contains: grade.Contains{"24"}}, {Regex: "24$"}}},
			{Name: "line-3", Input: json.RawMessage(`"A (b)?"`), Graders: []grade.Spec{{Contains: grade.Contains{"1.5"}}, {Regex: `1\.5$`}}},
		}},
		{`{file: chat.jsonl.gz, case: {input: "{{input.0.content}} {{ input.-1.content }} {{n}}", graders: [{exact: "{{ideal}}"}]}}`, []Case{
			{Name: "line-1", Input: json.RawMessage(`"Be brief. 2+2? 9007199254740993"`), Graders: []grade.Spec{{Exact: "4"}}},
		}},
		{`{file: code.jsonl, case: {name: "{{task_id}}", input: "{{prompt}}", graders: [{command: {run: [./check, "{{test}}", "{{entry}}"]}}]}}`, []Case{
			{Name: "code-0", Input: json.RawMessage(`"def add(a, b):"`), Graders: []grade.Spec{{Command: &grade.Command{Run: []string{"./check", "assert add(1, 2) == {{3}}", "add"}}}}},
		}},
		{`{file: skill.json, list: evals, dir: data, case: {name: "{{id}}", input: {ask: "{{prompt}}"}, files: "{{files}}", graders: [{exact: "{{assertions | json}}"}]}}`, []Case{
			{Name: "top", Input: json.RawMessage(`{"ask":"Which?"}`), Files: []string{"data/a.csv", "data/b.csv"}, Graders: []grade.Spec{{Exact: `["A","B"]`}}},
		}},
		{`{file: table.csv, case: {input: "{{q}}", graders: [{exact: "{{a}}"}]}}`, []Case{
			{Name: "line-2", Input: json.RawMessage(`"Two\nlines?"`), Graders: []grade.Spec{{Exact: "yes"}}},
			{Name: "line-4", Input: json.RawMessage(`"One?"`), Graders: []grade.Spec{{Exact: "no"}}},
		}},
		{`{file: list.yaml, case: {input: "{{q}}", graders: [{exact: "{{a}}"}]}}`, []Case{{Name: "record-1", Input: json.RawMessage(`"x"`), Graders: []grade.Spec{{Exact: "y"}}}}},
	} {
		s, err := Read([]byte("name: a\nagent: b\ncases_from: " + c.from))
		require.NoError(t, err, c.from)
		require.ErrorContains(t, s.Check(), "is not read yet")
		require.NoError(t, s.ReadCases(dir, Pick{}), c.from)
		require.Equal(t, c.want, s.Cases)
		require.Nil(t, s.CasesFrom)
	}
}

// A pick takes the same records each time, in the order of the file.
func TestPick(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "n.jsonl", strings.Repeat("{\"q\": 1}\n", 3)+"{\"q\": 2}\n{\"q\": 3}\n")
	names := func(pick Pick, own string) (list []string) {
		s, err := Read([]byte("name: a\nagent: b\ncases: [{name: own, input: x, graders: [{exact: y}]}]\ncases_from: {file: n.jsonl, " + own + "case: {input: '{{q}}', graders: [{exact: y}]}}"))
		require.NoError(t, err)
		require.NoError(t, s.ReadCases(dir, pick))
		for _, c := range s.Cases {
			list = append(list, c.Name)
		}
		return list
	}
	require.Equal(t, []string{"own", "line-1", "line-2"}, names(Pick{Limit: 2}, ""))
	require.Equal(t, []string{"own", "line-1"}, names(Pick{}, "limit: 1, "))
	sample := names(Pick{Sample: 2}, "limit: 1, ")
	require.Len(t, sample, 3)
	require.Equal(t, sample, names(Pick{}, "sample: 2, "))
	require.Len(t, names(Pick{Sample: 9}, ""), 6)
}

// Errors name the place in the suite and the record.
func TestCasesFromThatAreRefused(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "a.jsonl", "{\"q\": \"x\", \"null\": null}\n{\"p\": \"x\"}\n")
	put(t, dir, "b.jsonl", "{}\n{]\n")
	put(t, dir, "c.json", `{"evals": {}}`)
	put(t, dir, "d.csv", "a,b\n1\n")
	put(t, dir, "e.jsonl", strings.Repeat("{\"q\": 1}\n", 501))
	put(t, dir, "f.txt", "x")
	put(t, dir, "g.jsonl", "\n")
	put(t, dir, "h.json.gz", strings.Repeat(" ", MaxData+1))
	put(t, dir, "l.jsonl", strings.Repeat("{\"q\": \""+strings.Repeat("x", 100_000)+"\"}\n", 6))
	outside := t.TempDir()
	put(t, outside, "m.json", `[{"q": "secret"}]`)
	require.NoError(t, os.Symlink(filepath.Join(outside, "m.json"), filepath.Join(dir, "n.json")))
	put(t, dir, "o.yaml", "- q: &a \""+strings.Repeat("x", 1<<20)+"\"\n  r: ["+strings.Repeat("*a,", 1000)+"]\n")
	put(t, dir, "p.yaml", "- q: &a x\n- {<<: {r: *a}, q: y}\n")
	put(t, dir, "q.jsonl", `{"q": "`+strings.Repeat("x", 100_000)+`", "r": [`+strings.Repeat("1,", 50_000)+"1]}\n")
	grader := ", graders: [{exact: y}]}"
	for from, says := range map[string]string{
		`{file: a.jsonl, case: {input: "{{q}}"` + grader + `}`:                  `cases_from.case.input does not fit line 2 of a.jsonl: there is no "q"; there are "p"`,
		`{file: a.jsonl, case: {input: "{{null}}"` + grader + `}`:               `line 1 of a.jsonl: null is null`,
		`{file: a.jsonl, case: {input: "{{q.r}}"` + grader + `}`:                `there is no "r" in a text`,
		`{file: a.jsonl, case: {input: "{{q | upper}}"` + grader + `}`:          `"upper" is no filter`,
		`{file: a.jsonl, case: {input: "{{q | after z}}"` + grader + `}`:        `q has no "z"`,
		`{file: a.jsonl, case: {input: x, graders: [{exatc: y}]}}`:              `cases_from.case.graders[0].exatc is not known here (with line 1 of a.jsonl)`,
		`{file: a.jsonl, case: {input: x}}`:                                     `cases_from.case.graders is missing: nothing would say whether the case passes (with line 1 of a.jsonl)`,
		`{file: a.jsonl, case: {name: x, input: x` + grader + `}`:               `makes the name x of line 2 of a.jsonl, and of line 1 of a.jsonl`,
		`{file: a.jsonl, limit: -1, case: {input: x` + grader + `}`:             `cases_from has a negative limit`,
		`{file: a.jsonl, limit: 1, sample: 1, case: {input: x` + grader + `}`:   `choose one`,
		`{file: a.jsonl, list: q, case: {input: x` + grader + `}`:               `list is for a JSON or YAML file`,
		`{file: a.jsonl, dir: x, case: {input: x, files: [../y]` + grader + `}`: `files lie within dir (with line 1 of a.jsonl)`,
		`{file: a.jsonl}`: `cases_from.case is missing`,
		`{file: b.jsonl, case: {input: x` + grader + `}`:                                        `b.jsonl: line 2 is not JSON`,
		`{file: c.json, case: {input: x` + grader + `}`:                                         `the file is no list of records`,
		`{file: c.json, list: eval, case: {input: x` + grader + `}`:                             `there is no "eval"; there are "evals"`,
		`{file: d.csv, case: {input: x` + grader + `}`:                                          `d.csv: not CSV: record on line 2`,
		`{file: e.jsonl, case: {input: x` + grader + `}`:                                        `makes 501 cases with those of the suite, and 500 are allowed: choose some with limit or sample`,
		`{file: f.txt, case: {input: x` + grader + `}`:                                          `a data file is .jsonl, .json, .yaml or .csv`,
		`{file: g.jsonl, case: {input: x` + grader + `}`:                                        `has no records`,
		`{file: h.json.gz, case: {input: x` + grader + `}`:                                      `more than 33554432 bytes`,
		`{file: l.jsonl, case: {input: "{{q}}"` + grader + `}`:                                  `the cases have 600`,
		`{file: ., case: {input: x` + grader + `}`:                                              `no regular file`,
		`{file: ` + filepath.Join(outside, "m.json") + `, case: {input: "{{q}}"` + grader + `}`: `m.json can't be read: it lies outside the suite's directory`,
		`{file: ../` + filepath.Base(outside) + `/m.json, case: {input: "{{q}}"` + grader + `}`: `m.json can't be read: it lies outside the suite's directory`,
		`{file: n.json, case: {input: "{{q}}"` + grader + `}`:                                   `n.json can't be read: path escapes`,
		`{file: o.yaml, case: {input: "{{q}}"` + grader + `}`:                                   `it has an alias`,
		`{file: p.yaml, case: {input: "{{q}}"` + grader + `}`:                                   `it has an alias`,
		`{file: q.jsonl, case: {input: "{{q}} {{q}}"` + grader + `}`:                            `its values have more than 131072 bytes`,
		`{file: q.jsonl, case: {input: x, graders: ["{{r}}", "{{r}}"]}}`:                        `its values have more than 131072 bytes`,
		`{file: none.jsonl, case: {input: x` + grader + `}`:                                     `the data file none.jsonl can't be read: no such file`,
	} {
		s, err := Read([]byte("name: a\nagent: b\ncases_from: " + from))
		require.NoError(t, err, from)
		err = s.ReadCases(dir, Pick{})
		require.ErrorContains(t, err, says, from)
		require.Contains(t, []agent.Code{agent.CodeInvalidInput, agent.CodeTooLarge}, agent.CodeOf(err), from)
	}
	s, err := Read([]byte("name: a\nagent: b\ncases: [{name: x, input: y, graders: [{exact: z}]}]\n"))
	require.NoError(t, err)
	require.ErrorContains(t, s.ReadCases(dir, Pick{Limit: 1}), "the suite has no cases_from")
}

// A filter may double a text, and filters may follow each other: none makes a value that no case can have.
func TestFiltersMakeNoValueOfAnySize(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "d.jsonl", `{"x": "."}`+"\n")
	read := func(quotes int) error {
		s, err := Read([]byte("name: s\nagent: a\ncases_from:\n  file: d.jsonl\n  case:\n    input: \"{{x" + strings.Repeat("|quote", quotes) + "}}\"\n    graders: [{exact: a}]\n"))
		require.NoError(t, err)
		return s.ReadCases(dir, Pick{})
	}
	require.NoError(t, read(10))
	require.ErrorContains(t, read(60), "quote makes a value of more than 131072 bytes") // 2^60 bytes, else
}
