package openai_test

import (
	"strings"
	"testing"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
)

// Thoughts that a server leaves in the text are thoughts, however their marks are cut; a
// mark within a text is text.
func TestThinkInText(t *testing.T) {
	for said, want := range map[string][2]string{
		"<think>Hm.</think>\n\nHello":      {"Hm.", "Hello"},
		"\n<think>\nHm.\n</think>Hello":    {"\nHm.\n", "Hello"},
		"<think></think>Hello":             {"", "Hello"},
		"<think>Hm, < that":                {"Hm, < that", ""},
		"Say <think>Hm.</think>":           {"", "Say <think>Hm.</think>"},
		"<thin ice>":                       {"", "<thin ice>"},
		"<thi":                             {"", "<thi"},
		"<think>a</thin</think>b</think>c": {"a</thin", "b</think>c"},
	} {
		for _, n := range []int{1, 3, 1000} {
			var chunks []string
			for rest := said; rest != ""; {
				k := min(n, len(rest))
				chunks, rest = append(chunks, text(rest[:k])), rest[k:]
			}
			chunks = append([]string{begin}, append(chunks, because("stop"), counted, end)...)
			m, _ := serve(t, standin.Drip(stream(chunks...), 0))
			reply, h := standin.Reply(t, m, ask("Hello"))
			expected := &model.Reply{Finish: model.FinishStop, Usage: plainUsage}
			if want[0] != "" {
				expected.Parts = append(expected.Parts, thought(want[0], ""))
			}
			if want[1] != "" {
				expected.Parts = append(expected.Parts, agent.Part{Type: agent.PartText, Text: want[1]})
			}
			standin.Same(t, said, reply, expected, h)
		}
	}
}

// Streams may begin with a byte order mark, and end their lines with a carriage return.
func TestLineEndings(t *testing.T) {
	for name, with := range map[string]*strings.Replacer{
		"mark": strings.NewReplacer(), "CR": strings.NewReplacer("\n", "\r"), "CRLF": strings.NewReplacer("\n", "\r\n"),
	} {
		for _, n := range []int{0, 1} {
			whole := with.Replace(stream(begin, text("Hello"), because("stop"), counted, end))
			if name == "mark" {
				whole = "\ufeff" + whole
			}
			m, _ := serve(t, standin.Drip(whole, n))
			reply, h := standin.Reply(t, m, ask("Hello"))
			standin.Same(t, name, reply, &model.Reply{Parts: []agent.Part{said("Hello")}, Finish: model.FinishStop, Usage: plainUsage}, h)
		}
	}
}
