package testsuite_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// A model that no longer sees a file, since a summary has replaced the message with it, reads its
// name and is shown it again when it asks. Until then it has no tool for that.
func TestAFileOfAConversationThatWasSummedUp(t *testing.T) {
	const chart = "chart.pdf#e16fa5d9"
	script := testsuite.NewScript(page(1), page(2), page(3), show("x.png"), show(chart), testsuite.Reply{Text: "Three bars."})
	s := readers(t, script)
	run := s.Start("reader", "Read it, and compare.", &client.StartOptions{Files: []client.FileInput{{Name: "chart.pdf", Text: "the sales", Data: []byte("%PDF-1.4")}}})
	require.Equal(t, "Three bars.", run.Completed().Text)

	var named, wrong, shownAgain bool
	for _, req := range script.Requests() {
		said := words(req.Messages)
		require.Contains(t, said, "["+chart+" (application/pdf, 8 bytes)]")
		if !strings.Contains(said, "[Files of the conversation before") {
			require.Len(t, req.Tools, 2)
			require.Len(t, req.Files, 1)
			continue
		}
		named = true
		wrong = wrong || strings.Contains(said, `there is no file "x.png"; there are: page.md#`)
		require.Len(t, req.Tools, 3, "also where a further summary is asked for: the tools come first in a provider's cache")
		require.Equal(t, agent.ShowFileTool, req.Tools[2].Name)
		for _, m := range req.Messages {
			for _, p := range m.Parts {
				if p.Result != nil && len(p.Result.Files) > 0 {
					shownAgain = true
					require.Equal(t, agent.ShowFileTool, p.Result.Tool)
					require.Equal(t, "%PDF-1.4", string(req.Files[p.Result.Files[0].File.Digest]))
					require.Contains(t, p.Result.Text, "the sales")
				}
			}
		}
	}
	require.True(t, named)
	require.True(t, shownAgain)
	require.True(t, wrong)
}

// The tool also finds a file that is too old to be named by a summary.
func TestAnOldFileIsFoundInTheWholeConversation(t *testing.T) {
	const oldest = "00.md#e63c05c9"
	script := testsuite.NewScript(page(1), page(2), page(3), show(oldest), testsuite.Reply{Text: "I see."})
	s := readers(t, script)
	var files []client.FileInput
	for i := range 20 {
		files = append(files, client.FileInput{Name: fmt.Sprintf("%02d.md", i), Data: fmt.Appendf(nil, "note %d", i)})
	}
	s.Start("reader", "Read it.", &client.StartOptions{Files: files}).Completed()
	asked := script.Requests()
	said := words(asked[len(asked)-1].Messages)
	require.NotContains(t, said, "[Files of the conversation before:]\n["+oldest)
	require.Contains(t, said, "[05.md#")
	require.Contains(t, said, "["+oldest+" (text/markdown, 6 bytes)]\nnote 0")
}

// readers has an agent that reads pages, each with a small file, until its model's window is too small.
func readers(t *testing.T, script *testsuite.Script) *testsuite.Env {
	read := tool.New("read", "Reads a page.", func(ctx context.Context, c *tool.Call, in struct{ Page int }) (string, error) {
		return strings.Repeat("whale ", 2000), c.AddFile(ctx, agent.FileInput{Name: "page.md", Data: fmt.Appendf(nil, "page %d", in.Page)})
	}, nil)
	return testsuite.New(t, &testsuite.Options{
		Worker: &worker.Options{
			Agents: []agent.Definition{{Name: "reader", Model: "m", Tools: []string{"read"}, Compaction: agent.CompactionPolicy{KeepLast: 2}}},
			Tools:  []tool.Tool{read}, Models: map[string]model.Model{"m": model.WithInfo(script, "m", model.Info{Window: 10_000})},
		}, Model: script,
	})
}

func page(n int) testsuite.Reply {
	return testsuite.Reply{Calls: []testsuite.Call{{Tool: "read", Arguments: map[string]any{"Page": n}}}}
}

func show(name string) testsuite.Reply {
	return testsuite.Reply{Calls: []testsuite.Call{{Tool: agent.ShowFileTool, Arguments: map[string]any{"file": name}}}}
}

// words returns all texts of messages.
func words(messages []agent.Message) string {
	var all strings.Builder
	for _, m := range messages {
		all.WriteString(m.Text() + "\n")
		for _, p := range m.Parts {
			if p.Result != nil {
				all.WriteString(p.Result.Text + "\n")
			}
		}
	}
	return all.String()
}
