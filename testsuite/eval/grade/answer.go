package grade

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// Exact is the whole answer.
type Exact string

// Check implements [Pure].
func (Exact) Check() error { return nil }

// Grade implements [Pure].
func (e Exact) Grade(f *Facts) string {
	want, got := strings.TrimSpace(string(e)), strings.TrimSpace(f.answer())
	if want == got || sameJSON(want, got) {
		return ""
	}
	return fmt.Sprintf("the answer is %s, not %s", quote(got), quote(want))
}

// answer returns the answer as a text: an output's JSON, or what the model wrote.
func (f *Facts) answer() string {
	if len(f.Output) > 0 {
		return string(f.Output)
	}
	return f.Text
}

// sameJSON reports whether two texts are the same JSON value. Only objects and lists: 1 and
// 1.0 are different answers unless somebody asks for JSON.
func sameJSON(a, b string) bool {
	if a == "" || !strings.ContainsAny(a[:1], "{[") {
		return false
	}
	x, one := valueOf(a)
	y, two := valueOf(b)
	return one && two && reflect.DeepEqual(x, y)
}

func valueOf(text string) (v any, ok bool) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	return v, d.Decode(&v) == nil && !d.More()
}

// Contains are texts that all are in the answer.
type Contains []string

// Check implements [Pure].
func (c Contains) Check() error { return blank(c) }

func blank(list []string) error {
	if slices.Contains(list, "") {
		return agent.Errorf(agent.CodeInvalidInput, "an empty text is in every answer")
	}
	return nil
}

// Grade implements [Pure].
func (c Contains) Grade(f *Facts) string {
	for _, want := range c {
		if !strings.Contains(f.answer(), want) {
			return fmt.Sprintf("the answer does not contain %s: %s", quote(want), quote(f.answer()))
		}
	}
	return ""
}

// Lacks are texts that are not in the answer.
type Lacks []string

// Check implements [Pure].
func (l Lacks) Check() error { return blank(l) }

// Grade implements [Pure].
func (l Lacks) Grade(f *Facts) string {
	for _, no := range l {
		if strings.Contains(f.answer(), no) {
			return fmt.Sprintf("the answer contains %s: %s", quote(no), quote(f.answer()))
		}
	}
	return ""
}

// Regex matches somewhere in the answer.
type Regex string

// Check implements [Pure].
func (r Regex) Check() error {
	_, err := regexp.Compile(string(r))
	return err
}

// Grade implements [Pure].
func (r Regex) Grade(f *Facts) string {
	if regexp.MustCompile(string(r)).MatchString(f.answer()) {
		return ""
	}
	return fmt.Sprintf("%s does not match the answer: %s", quote(string(r)), quote(f.answer()))
}

// Schema is a JSON Schema that the answer fits.
type Schema json.RawMessage

// Check implements [Pure].
func (s Schema) Check() error { return model.CheckOutput(json.RawMessage(s)) }

// Grade implements [Pure].
func (s Schema) Grade(f *Facts) string {
	value := bytes.TrimSpace([]byte(f.answer()))
	if !json.Valid(value) {
		return "the answer is not JSON: " + quote(f.answer())
	}
	return model.Fits(json.RawMessage(s), value)
}

// Status is the status of the run.
type Status agent.Status

// Check implements [Pure].
func (s Status) Check() error {
	if st := agent.Status(s); st.Ended() || st == agent.StatusSuspended {
		return nil
	}
	return agent.Errorf(agent.CodeInvalidInput, "a trial ends completed, failed, suspended, stopped or cancelled, and not %q", string(s))
}

// Grade implements [Pure].
func (s Status) Grade(f *Facts) string {
	if f.Status == agent.Status(s) {
		return ""
	}
	why := f.Reason
	for _, r := range f.Requests {
		if f.Status == agent.StatusSuspended && r.Decision == "" { // the trial's person has no rule for it
			why = fmt.Sprintf("nobody answers its %s: %s", strings.ReplaceAll(string(r.Type), "_", " "), quote(cmp.Or(r.Tool, r.Text)))
		}
	}
	return fmt.Sprintf("the run is %s (%s), not %s", f.Status, cmp.Or(why, "no reason"), s)
}
