package eval

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// hole is a place of a template that a value of a record fills: {{PATH}}, with filters.
var hole = regexp.MustCompile(`\{\{\s*([^{}]+?)\s*\}\}`)

// misfit is a template that a record does not fit, with the path in the template.
type misfit struct {
	path string
	err  error
}

func (m *misfit) Error() string { return m.err.Error() }

// filler fills a template from one record.
type filler struct {
	record any
	left   int // bytes that values may still add
}

// fill returns a template with its holes filled. A text that is one hole alone becomes the
// list or object that fills it. Anywhere else a value becomes text.
func (f *filler) fill(template any, path string) (any, error) {
	switch v := template.(type) {
	case string:
		filled, err := f.text(v)
		if err != nil {
			return nil, &misfit{path, err}
		}
		return filled, nil
	case []any:
		list := make([]any, len(v))
		for i := range v {
			one, err := f.fill(v[i], fmt.Sprintf("%s[%d]", path, i))
			if err != nil {
				return nil, err
			}
			list[i] = one
		}
		return list, nil
	case map[string]any:
		object := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			one, err := f.fill(v[key], path+"."+key)
			if err != nil {
				return nil, err
			}
			object[key] = one
		}
		return object, nil
	}
	return template, nil
}

func (f *filler) text(text string) (any, error) {
	holes := hole.FindAllStringSubmatchIndex(text, -1)
	var b strings.Builder
	last := 0
	for _, at := range holes {
		value, err := valueOf(text[at[2]:at[3]], f.record)
		if err != nil {
			return nil, err
		}
		// Counted here, because many places may have one large value.
		written := textOf(value)
		if f.left -= len(written); f.left < 0 {
			return nil, fmt.Errorf("its values have more than %d bytes together", maxCase)
		}
		switch value.(type) {
		case []any, map[string]any:
			if len(holes) == 1 && strings.TrimSpace(text) == text[at[0]:at[1]] {
				return value, nil
			}
		}
		b.WriteString(text[last:at[0]])
		b.WriteString(written)
		last = at[1]
	}
	return b.String() + text[last:], nil
}

// textOf writes a value as text; other values than texts as JSON.
func textOf(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	raw, err := json.Marshal(value)
	if err != nil { // such as a YAML mapping with keys that are no texts
		return fmt.Sprint(value)
	}
	return string(raw)
}

// valueOf returns what PATH | FILTER… stands for in a record.
func valueOf(expression string, record any) (any, error) {
	parts := strings.Split(expression, "|")
	value, err := lookUp(record, strings.TrimSpace(parts[0]))
	if err != nil {
		return nil, err
	}
	for _, part := range parts[1:] {
		name, argument, _ := strings.Cut(strings.TrimSpace(part), " ")
		if argument = strings.TrimSpace(argument); strings.HasPrefix(argument, `"`) {
			if argument, err = strconv.Unquote(argument); err != nil {
				return nil, fmt.Errorf("%s: the text after it needs a quote at both ends", name)
			}
		}
		switch text := textOf(value); name {
		case "json":
			value = text
		case "quote":
			value = regexp.QuoteMeta(text)
		case "after":
			i := strings.LastIndex(text, argument)
			if argument == "" || i < 0 {
				return nil, fmt.Errorf("%s has no %.60q", strings.TrimSpace(parts[0]), argument)
			}
			value = strings.TrimSpace(text[i+len(argument):])
		default:
			return nil, fmt.Errorf("%.40q is no filter; there are after TEXT, json and quote", name)
		}
		// Here too: each quote may double a text.
		if len(textOf(value)) > maxCase {
			return nil, fmt.Errorf("%s makes a value of more than %d bytes", name, maxCase)
		}
	}
	return value, nil
}

// lookUp follows a path such as input.0.content or input.-1.content: keys, and places in
// lists from 0, or from -1 at the end.
func lookUp(value any, path string) (any, error) {
	for key := range strings.SplitSeq(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			next, ok := v[key]
			if !ok {
				return nil, fmt.Errorf("there is no %.60q; there are %s", key, excerptOf(slices.Sorted(maps.Keys(v))))
			}
			value = next
		case []any:
			i, err := strconv.Atoi(key)
			if i < 0 {
				i += len(v)
			}
			if err != nil || i < 0 || i >= len(v) {
				return nil, fmt.Errorf("%.60q is no place in a list of %d", key, len(v))
			}
			value = v[i]
		default:
			return nil, fmt.Errorf("there is no %.60q in a %s", key, kind(value))
		}
	}
	if value == nil {
		return nil, errors.New(path + " is null")
	}
	return value, nil
}

func kind(value any) string {
	switch value.(type) {
	case string:
		return "text"
	case bool:
		return "truth value"
	case nil:
		return "null"
	}
	return "number"
}

// excerptOf lists the first keys of a record for an error.
func excerptOf(keys []string) string {
	const most = 12
	for i, key := range keys {
		keys[i] = fmt.Sprintf("%.40q", key)
	}
	if len(keys) > most {
		keys = append(keys[:most], "others")
	}
	return strings.Join(append(keys, "nothing else")[:max(1, len(keys))], ", ")
}
