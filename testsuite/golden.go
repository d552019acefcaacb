package testsuite

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// UpdateGolden is the environment variable that makes [Run.Golden] write its file; any
// value counts.
const UpdateGolden = "FERMATA_UPDATE"

// Golden compares the session's [Run.Story] with a file. A difference fails the test.
// With FERMATA_UPDATE=1 it writes the file instead: read it before you commit it.
func (r *Run) Golden(path string) {
	r.env.t.Helper()
	// Only what is stored is compared, so the run must be suspended or ended.
	r.Wait()
	got := r.Story()
	if os.Getenv(UpdateGolden) != "" {
		require.NoError(r.env.t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(r.env.t, os.WriteFile(path, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(r.env.t, err, "%s=1 writes it", UpdateGolden)
	require.Equal(r.env.t, string(want), got, "%s differs; %s=1 writes it again", path, UpdateGolden)
}

// Story returns what happened in the session, line by line, as far as it is stored. It
// leaves out what varies: times, costs and the session's id.
func (r *Run) Story() string {
	r.env.t.Helper()
	var b strings.Builder
	for _, e := range r.Events() {
		for _, line := range lines(e) {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
	// Word boundaries, because a session's name may be part of another word.
	return regexp.MustCompile(`\b`+regexp.QuoteMeta(r.Session)+`\b`).ReplaceAllString(b.String(), "SESSION")
}

// lines returns the lines of one event; none if other events say the same.
func lines(e agent.Event) []string {
	name := string(e.Type)
	switch {
	case e.Started != nil:
		return []string{name + " " + e.Started.Spec.Name}
	case e.Type == agent.EventTurnStarted:
		return []string{fmt.Sprintf("turn %d", e.Turn)}
	case e.Type == agent.EventTurnEnded, e.Type == agent.EventCallRequested, e.Type == agent.EventCallStarted:
		return nil // the message has the call, and the result shows that it was made
	case e.Message != nil && e.Type == agent.EventMessage:
		return messageLines(*e.Message)
	case e.Call != nil:
		return []string{fmt.Sprintf("  %s %s %s %s", name, e.Call.Call, e.Call.Tool, e.Call.Status)}
	case e.Outcome != nil:
		return []string{name + " " + e.Outcome.Reason}
	case e.Suspension != nil:
		return []string{fmt.Sprintf("%s %s %s", name, e.Suspension.Kind, e.Suspension.Cause)}
	case e.Resumed != nil:
		return []string{fmt.Sprintf("%s by %s %s", name, e.Resumed.Cause, e.Resumed.Event)}
	case e.Hold != nil:
		return []string{fmt.Sprintf("%s %s %s", name, e.Hold.Verb, e.Hold.From)}
	case e.Request != nil:
		return indented(fmt.Sprintf("%s %s %s: ", name, e.Request.ID, e.Request.Type), e.Request.Text)
	case e.Answer != nil:
		return []string{fmt.Sprintf("%s %s %s %s", name, e.Answer.Request, e.Answer.Decision, e.Answer.By)}
	case e.Child != nil:
		return []string{fmt.Sprintf("%s %s %s", name, e.Child.Session[strings.LastIndexByte(e.Child.Session, '/')+1:], e.Child.Status)}
	case e.Refusal != nil:
		return []string{fmt.Sprintf("%s %s", name, e.Refusal.Verb)}
	}
	return []string{name + " " + string(e.Extended)}
}

// messageLines returns the lines of a message.
func messageLines(m agent.Message) (list []string) {
	who := string(m.Role)
	if m.Note != "" {
		who += " (" + string(m.Note) + ")"
	}
	for _, p := range m.Parts {
		switch {
		case p.Call != nil:
			list = append(list, fmt.Sprintf("%s calls %s %s %s", who, p.Call.ID, p.Call.Tool, p.Call.Arguments))
		case p.Result != nil:
			list = append(list, indented(fmt.Sprintf("  %s %s %s: ", p.Result.Call, p.Result.Tool, p.Result.Status), p.Result.Text)...)
			for _, f := range (agent.Message{Parts: p.Result.Files}).Files() {
				list = append(list, "    ["+f.String()+"]")
			}
		case p.Type == agent.PartText:
			list = append(list, indented(who+": ", p.Text)...)
		default:
			list = append(list, who+" "+string(p.Type))
		}
	}
	return list
}

// indented puts a text after a head, and its further lines below.
func indented(head, text string) []string {
	list := strings.Split(strings.TrimRight(text, "\n"), "\n")
	list[0] = head + list[0]
	for i := 1; i < len(list); i++ {
		list[i] = "    " + list[i]
	}
	return list
}
