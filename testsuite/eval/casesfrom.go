package eval

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
)

// CasesFrom makes a case of each record of a data file, such as a published data set.
type CasesFrom struct {
	// File is a .jsonl, .json, .yaml or .csv file, also with .gz. Its path starts at the
	// suite's directory, and leads to a file within it, also through links.
	File string `json:"file"`
	// List leads to the list of records in a .json or .yaml file, such as "evals"; empty means
	// that the file is the list.
	List string `json:"list,omitempty"`
	// Pick says which records are taken.
	Pick
	// Dir is the directory of the cases' files, from the suite's; empty is the suite's own.
	Dir string `json:"dir,omitempty"`
	// Case is a [Case] whose texts may have {{PATH}} for a value of the record. Without a
	// name, a case is named after its place in the file.
	Case json.RawMessage `json:"case"`
}

// Pick chooses records of a data file. The zero value takes all.
type Pick struct {
	// Limit takes the first records, this many.
	Limit int `json:"limit,omitempty"`
	// Sample takes this many records, the same at each reading.
	Sample int `json:"sample,omitempty"`
}

const maxCase = 128 << 10 // bytes of a case as JSON

func (p Pick) check(at string) error {
	switch {
	case p.Limit < 0 || p.Sample < 0:
		return fault(at, "has a negative limit or sample; each is 1 or more")
	case p.Limit > 0 && p.Sample > 0:
		return fault(at, "has limit and sample: choose one")
	}
	return nil
}

// of returns the chosen records in the file's order.
func (p Pick) of(rows []row) []row {
	if p.Limit > 0 {
		return rows[:min(p.Limit, len(rows))]
	}
	if p.Sample == 0 || p.Sample >= len(rows) {
		return rows
	}
	// By what the records are, so that a longer file keeps most of the sample.
	keys := make([][sha256.Size]byte, len(rows))
	order := make([]int, len(rows))
	for i := range rows {
		keys[i], order[i] = sha256.Sum256([]byte(textOf(rows[i].value))), i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(bytes.Compare(keys[a][:], keys[b][:]), cmp.Compare(a, b)) })
	order = order[:p.Sample]
	slices.Sort(order)
	chosen := make([]row, len(order))
	for i, at := range order {
		chosen[i] = rows[at]
	}
	return chosen
}

// ReadCases replaces CasesFrom by the cases of its file, after those that are written in the
// suite, and checks the suite. dir is the suite's directory. A pick that is not zero
// replaces that of the suite. Errors are [agent.CodeInvalidInput] or [agent.CodeTooLarge].
func (s *Suite) ReadCases(dir string, pick Pick) error {
	from := s.CasesFrom
	if from == nil {
		if pick != (Pick{}) {
			return agent.Errorf(agent.CodeInvalidInput, "limit and sample choose records of a data file, and the suite has no cases_from")
		}
		return s.Check()
	}
	if pick == (Pick{}) {
		pick = from.Pick
	}
	if err := pick.check("cases_from"); err != nil {
		return err
	}
	rows, err := readRows(dir, from.File, from.List)
	if err != nil {
		return fault("cases_from.file", "%w", err)
	}
	rows = pick.of(rows)
	if n := len(s.Cases) + len(rows); n > maxCases {
		return fault("cases_from", "makes %d cases with those of the suite, and %d are allowed: choose some with limit or sample", n, maxCases)
	}
	whole := *s
	whole.CasesFrom, whole.Cases = nil, slices.Clone(s.Cases)
	if err := whole.add(from, rows); err != nil {
		return err
	}
	if raw, err := json.Marshal(whole.Cases); err != nil || len(raw) > MaxSuite {
		return agent.Errorf(agent.CodeTooLarge, "the cases have %d bytes together, and %d are allowed: choose fewer with limit or sample", len(raw), MaxSuite)
	}
	if err := whole.Check(); err != nil {
		return err
	}
	*s = whole
	return nil
}

// add adds the cases of records.
func (s *Suite) add(from *CasesFrom, rows []row) error {
	var template any
	if err := number(from.Case, &template); err != nil {
		return fault("cases_from.case", "is missing: write input and graders, with {{KEY}} for values of a record")
	}
	names := map[string]string{}
	for _, c := range s.Cases {
		names[c.Name] = "a case of the suite"
	}
	for _, r := range rows {
		c, err := from.caseOf(template, r)
		if err != nil {
			return err
		}
		if other := names[c.Name]; other != "" {
			return fault("cases_from.case.name", "makes the name %s of %s, and of %s", c.Name, r.where, other)
		}
		names[c.Name] = r.where
		s.Cases = append(s.Cases, c)
		whole := s.Complete(len(s.Cases) - 1)
		if err := whole.check("cases_from.case"); err != nil {
			return within(err, r)
		}
	}
	return nil
}

// caseOf returns the case of a record.
func (from *CasesFrom) caseOf(template any, r row) (c Case, err error) {
	f := filler{record: r.value, left: maxCase}
	filled, err := f.fill(template, "cases_from.case")
	var unfit *misfit
	if errors.As(err, &unfit) {
		return c, fault(unfit.path, "does not fit %s: %w", r.where, unfit.err)
	}
	raw, err := json.Marshal(filled)
	if err != nil {
		return c, fault("cases_from.case", "does not fit %s: %w", r.where, err)
	}
	if err := durable.Decode(raw, &c, maxCase); err != nil {
		return c, within(below("cases_from.case", err), r)
	}
	if c.Name = slug(c.Name); c.Name == "" {
		c.Name = r.name
	}
	for i, file := range c.Files {
		// A record chooses among the files of dir, and no others of the suite's author.
		if !filepath.IsLocal(file) {
			return c, fault("cases_from.case.files", "has %.200q: files lie within dir (with %s)", file, r.where)
		}
		c.Files[i] = path.Join(filepath.ToSlash(from.Dir), file)
	}
	return c, nil
}

// within says with which record a case is at fault.
func within(err error, r row) error {
	var e *agent.Error
	if !errors.As(err, &e) {
		return err
	}
	return agent.Errorf(e.Code, "%s (with %s)", e.Message, r.where).WithPath(e.Path)
}

// below puts a path before that of an error.
func below(at string, err error) error {
	var e *agent.Error
	if !errors.As(err, &e) || e.Path == "" {
		return fmt.Errorf("%s: %w", at, err)
	}
	return agent.Errorf(e.Code, "%s.%s", at, e.Message).WithPath(at + "." + e.Path)
}

var noName = regexp.MustCompile(`[^a-z0-9_]+`)

// slug makes a case's name of a text.
func slug(text string) string {
	text = strings.Trim(noName.ReplaceAllString(strings.ToLower(text), "-"), "-_")
	return strings.TrimRight(text[:min(len(text), 40)], "-_")
}
