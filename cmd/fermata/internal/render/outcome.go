package render

import (
	"cmp"
	"fmt"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

// End shows how the run ended, and its answer if that was not shown yet.
func (t *Printer) End(o *agent.Outcome) {
	t.Flush()
	t.endText()
	if o.Text != "" && o.Text != t.reply {
		t.print(o.Text)
		t.endText()
		for _, line := range Citations(o.Text, o.Citations, 0) {
			t.note("%s", untrusted.Block(line))
		}
	}
	if len(o.Output) > 0 && !same(o.Output, []byte(o.Text)) {
		t.line("%s", untrusted.Margin(Output(o.Output)))
	}
	t.artifacts(o)
	for _, line := range Unread(o.Unread) {
		t.note("%s", untrusted.Block(line))
	}
	if e := o.Unsaved; e != nil {
		t.note("the run's end is not stored: [%s] %s; the session's next run stores it, or says why it can't", e.Code, untrusted.Line(e.Message, 200))
	}
	mark := t.style.bad
	if o.OK() {
		mark = t.style.good
	}
	t.line("%s%s%s", mark, Summary(o), t.style.off)
}

// Unread says what came too late for the model, a line for each message. Whoever prints the lines makes
// them safe for a terminal.
func Unread(list []agent.UnreadMessage) (lines []string) {
	if len(list) == 0 {
		return nil
	}
	lines = []string{Count(len(list), "message") + " came too late for the model; the session's next run reads what was said:"}
	for _, m := range list {
		lines = append(lines, fmt.Sprintf("  %s (event %d): %s", cmp.Or(m.By, "somebody"), m.Event, cmp.Or(m.Text, "not shown here; fermata events has it")))
	}
	return lines
}

// maxListed is how many artifacts are listed at a run's end.
const maxListed = 20

// artifacts names the last versions of the artifacts that a run knows at its end.
func (t *Printer) artifacts(o *agent.Outcome) {
	for i := range min(len(o.Artifacts), maxListed) {
		a := &o.Artifacts[i]
		where := ""
		if a.Session != o.Session {
			where = " of session " + untrusted.Name(a.Session)
		}
		t.note("artifact %s%s", Artifact(a), where)
	}
	if len(o.Artifacts) > maxListed || o.ArtifactsLeft > 0 {
		t.note("and more artifacts: see fermata artifacts %s; those of sub-agents are in their sessions", untrusted.Name(o.Session))
	}
}
