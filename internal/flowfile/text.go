package flowfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// part is a piece of a text: words, or a path that stands for a value.
type part struct {
	words string
	path  []string
}

var (
	pathForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*$`)
	nameForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)
)

// parts splits a text at its paths.
func parts(text string) (list []part, err error) {
	words := ""
	for text != "" {
		before, rest, found := strings.Cut(text, "${")
		if words += before; !found {
			break
		}
		if strings.HasSuffix(before, "$") { // "$${" stands for "${"
			words, text = words+"{", rest
			continue
		}
		inside, after, closed := strings.Cut(rest, "}")
		if !closed {
			return nil, errors.New(`a "${" without "}"; write "$${" for a plain "${"`)
		}
		path, err := pathOf(inside)
		if err != nil {
			return nil, fmt.Errorf(`"${%.60s}": %w; write "$${" for a plain "${"`, inside, err)
		}
		if words != "" {
			list = append(list, part{words: words})
		}
		list, words, text = append(list, part{path: path}), "", after
	}
	if words != "" || len(list) == 0 {
		list = append(list, part{words: words})
	}
	return list, nil
}

// pathOf splits a path: names, and places in lists from 0, with dots between them.
func pathOf(text string) ([]string, error) {
	if !pathForm.MatchString(text) {
		return nil, errors.New("a path has names with dots between them, such as input.files.0")
	}
	return strings.Split(text, "."), nil
}

// scope has the values that a step sees.
type scope struct {
	values map[string]any
	above  *scope
}

func (s *scope) below() *scope { return &scope{map[string]any{}, s} }

// at returns the value of a path; nil if there is none.
func (s *scope) at(path []string) any {
	var v any
	for in := s; in != nil; in = in.above {
		if found, ok := in.values[path[0]]; ok {
			v = found
			break
		}
	}
	for _, name := range path[1:] {
		v = within(v, name)
	}
	return v
}

// within returns a part of a value; nil if there is none. A text that is JSON has its parts: it is
// what tools return.
func within(v any, name string) any {
	if text, ok := v.(string); ok {
		v = jsonOf(text)
	}
	switch v := v.(type) {
	case map[string]any:
		return v[name]
	case []any:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(v) {
			return v[i]
		}
	}
	return nil
}

// jsonOf returns the value of a JSON text; nil if the text is no JSON.
func jsonOf(text string) (v any) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber() // a float64 would lose digits
	if d.Decode(&v) != nil {
		return nil
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) { // something follows
		return nil
	}
	return v
}

// text returns a text with its values. Check has found that it is valid.
func (s *scope) text(text string) string { return textOf(s.fill(text)) }

// value returns a value with the values of its texts.
func (s *scope) value(v Value) any { return s.fill(jsonOf(string(v))) }

// fill replaces the paths in the texts of a value.
func (s *scope) fill(v any) any {
	switch v := v.(type) {
	case string:
		list, err := parts(v)
		if err != nil {
			return v
		}
		if len(list) == 1 && list[0].path != nil {
			return s.at(list[0].path)
		}
		var out strings.Builder
		for _, p := range list {
			if out.WriteString(p.words); p.path != nil {
				out.WriteString(textOf(s.at(p.path)))
			}
		}
		return out.String()
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = s.fill(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key := range v { // each entry by itself, so that the order changes nothing
			out[key] = s.fill(v[key])
		}
		return out
	}
	return v
}

// textOf returns a value as a text: null as nothing, a text as it is, others as JSON.
func textOf(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	return string(rawOf(v))
}

// rawOf returns a value as JSON. The values here all came from JSON.
func rawOf(v any) json.RawMessage {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false) // people and models read it
	_ = e.Encode(v)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// timeOf returns the time that a text says.
func timeOf(text string) (time.Time, error) {
	for _, form := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(form, text); err == nil {
			return t.UTC(), nil // else it depends on the worker's own zone
		}
	}
	return time.Time{}, fmt.Errorf("is %.60q: write a time such as 2027-01-31T09:00:00+01:00, or a day such as 2027-01-31", text)
}
