package skill

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/fermata-agents/fermata/agent"
)

// header is the front matter of SKILL.md. Fields that it does not have are ignored: other
// agents have fields of their own.
type header struct {
	Name          string         `yaml:"name"`
	Description   string         `yaml:"description"`
	WhenToUse     string         `yaml:"when_to_use"`
	License       string         `yaml:"license"`
	Compatibility string         `yaml:"compatibility"`
	Metadata      map[string]any `yaml:"metadata"`
	AllowedTools  words          `yaml:"allowed-tools"`
	AllowedTools2 words          `yaml:"allowed_tools"`
	Paths         words          `yaml:"paths"`
	MCP           words          `yaml:"mcp"`
	UserOnly      bool           `yaml:"disable-model-invocation"`
	UserInvocable *bool          `yaml:"user-invocable"`
}

// words are a list, or one text with spaces or commas between its words. A word in
// parentheses may have both.
type words []string

// UnmarshalYAML reads either form.
func (w *words) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.SequenceNode {
		return n.Decode((*[]string)(w))
	}
	var text string
	if err := n.Decode(&text); err != nil {
		return err
	}
	open := 0
	*w = strings.FieldsFunc(text, func(r rune) bool {
		switch r {
		case '(':
			open++
		case ')':
			open--
		}
		return open <= 0 && (r == ',' || unicode.IsSpace(r))
	})
	return nil
}

// split splits SKILL.md into its front matter and its instructions.
func split(raw []byte) (front, body []byte, err error) {
	raw = bytes.ReplaceAll(raw, []byte("\r\n"), []byte("\n"))
	rest, ok := bytes.CutPrefix(raw, []byte("---\n"))
	if !ok {
		return nil, nil, errors.New(FileName + " must begin with a line ---, the front matter, and a second line ---")
	}
	if bytes.HasPrefix(rest, []byte("---\n")) {
		return nil, rest[4:], nil
	}
	front, body, ok = bytes.Cut(rest, []byte("\n---\n"))
	if !ok {
		if front, ok = bytes.CutSuffix(rest, []byte("\n---")); !ok {
			return nil, nil, errors.New("the front matter of " + FileName + " has no end: write a line --- after it")
		}
	}
	if len(front) > maxFrontMatter {
		return nil, nil, fmt.Errorf("the front matter has %d bytes, and may have %d", len(front), maxFrontMatter)
	}
	if len(body) > MaxInstructions {
		return nil, nil, fmt.Errorf("the instructions have %d bytes, and may have %d: move a part into another file of the skill", len(body), MaxInstructions)
	}
	return front, body, nil
}

// read fills a skill from SKILL.md. base is the name of its directory.
func (s *Skill) read(raw []byte, base string) error {
	text, remark, err := seen(strings.TrimPrefix(string(raw), "\uFEFF"))
	switch {
	case !utf8.Valid(raw):
		return errors.New(FileName + " is not UTF-8")
	case err != nil:
		return fmt.Errorf("%s: %w", FileName, err)
	case remark != "":
		s.Remarks = append(s.Remarks, FileName+": "+remark)
	}
	front, body, err := split([]byte(text))
	if err != nil {
		return err
	}
	h, remark, err := readHeader(front)
	if err != nil {
		return fmt.Errorf("the front matter is no valid YAML: %w", err)
	}
	if remark != "" {
		s.Remarks = append(s.Remarks, remark)
	}
	s.fill(h)
	s.Instructions = strings.TrimSpace(string(body))
	if err := h.check(base, s); err != nil {
		return err
	}
	if s.Instructions == "" {
		return errors.New("there are no instructions after the front matter")
	}
	return nil
}

// fill takes over what a header says.
func (s *Skill) fill(h header) {
	allowed := append(h.AllowedTools, h.AllowedTools2...)
	tools, scoped := ownNames(allowed)
	s.Skill = agent.Skill{
		Name: h.Name, Description: oneLine(h.Description), WhenToUse: oneLine(h.WhenToUse), Tools: tools, Paths: h.Paths,
		UserOnly: h.UserOnly, ModelOnly: h.UserInvocable != nil && !*h.UserInvocable,
	}
	s.License, s.Compatibility, s.Metadata, s.MCP, s.AllowedTools = oneLine(h.License), oneLine(h.Compatibility), plainValues(h.Metadata), h.MCP, allowed
	if scoped {
		s.Remarks = append(s.Remarks, "allowed-tools limits the arguments of a tool in parentheses; here the agent's rules and its sandbox do that")
	}
}

// unquoted matches a value with a colon that YAML takes for another key.
var unquoted = regexp.MustCompile(`(?m)^(description|when_to_use|compatibility|license): +([^"'|>\[{&*!#\s].*: .*)$`)

// readHeader reads front matter. The commonest fault in published skills is a description
// with a colon and no quotes, which other agents read as it is meant. It is read so here,
// too, with a remark.
func readHeader(front []byte) (h header, remark string, err error) {
	if err = yaml.Unmarshal(front, &h); err == nil {
		return h, "", nil
	}
	quoted := quote(front)
	h = header{}
	if bytes.Equal(quoted, front) || yaml.Unmarshal(quoted, &h) != nil {
		return h, "", err
	}
	return h, "the front matter is no valid YAML: put quotes around texts that have a colon", nil
}

// quote puts quotes around the texts that have a colon and none.
func quote(front []byte) []byte {
	return unquoted.ReplaceAllFunc(front, func(line []byte) []byte {
		key, text, _ := bytes.Cut(line, []byte(": "))
		return fmt.Appendf(nil, "%s: '%s'", key, bytes.ReplaceAll(bytes.TrimSpace(text), []byte("'"), []byte("''")))
	})
}

// plainValues writes other values than texts as JSON: some agents keep settings there.
func plainValues(metadata map[string]any) map[string]string {
	if metadata == nil {
		return nil
	}
	values := map[string]string{}
	for key, value := range metadata {
		text, ok := value.(string)
		if raw, err := json.Marshal(value); !ok && err == nil {
			text = string(raw)
		}
		values[key] = text
	}
	return values
}

// check returns the first fault of a header.
func (h header) check(base string, s *Skill) error {
	if h.Name == "" {
		return errors.New("name is missing in the front matter")
	}
	if err := agent.CheckSkillName(h.Name); err != nil {
		return err
	}
	// Packages have directories of their own names. The name in the file is what counts.
	if h.Name != base {
		s.Remarks = append(s.Remarks, fmt.Sprintf("its directory is called %q; the open format asks for the skill's name, %s", base, h.Name))
	}
	for _, f := range []struct {
		name, text string
		most       int
	}{{"description", h.Description, maxDescription}, {"when_to_use", h.WhenToUse, maxDescription}, {"compatibility", h.Compatibility, maxCompatible}, {"license", h.License, maxDescription}} {
		if n := utf8.RuneCountInString(f.text); n > f.most {
			return fmt.Errorf("%s has %d characters, and may have %d", f.name, n, f.most)
		}
		// Again: YAML can write a character as an escape.
		if clean, _, err := seen(f.text); err != nil || clean != f.text {
			at := strings.IndexFunc(f.text, func(r rune) bool { return hides(r) || strays(r) || r == 0x2028 || r == 0x2029 })
			r, _ := utf8.DecodeRuneInString(f.text[at:])
			return fmt.Errorf("%s has the character %+q, which hides or reorders text; take it out", f.name, r)
		}
	}
	switch {
	case s.Description == "":
		return errors.New("description is missing in the front matter: say what the skill does and when to use it")
	case s.UserOnly && s.ModelOnly:
		return errors.New("with disable-model-invocation and user-invocable: false nobody could use it")
	}
	return nil
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
