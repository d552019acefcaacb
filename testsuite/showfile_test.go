package testsuite_test

import (
	"context"
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
	read := tool.New("read", "Reads a page.", func(context.Context, *tool.Call, struct{ Page int }) (string, error) {
		return strings.Repeat("whale ", 2000), nil
	}, nil)
	page := func(n int) testsuite.Reply {
		return testsuite.Reply{Calls: []testsuite.Call{{Tool: "read", Arguments: map[string]any{"Page": n}}}}
	}
	show := func(name string) testsuite.Reply {
		return testsuite.Reply{Calls: []testsuite.Call{{Tool: agent.ShowFileTool, Arguments: map[string]any{"file": name}}}}
	}
	script := testsuite.NewScript(page(1), page(2), page(3), show("x.png"), show(chart), testsuite.Reply{Text: "Three bars."})
	small := script.Info("m")
	small.Window = 10_000
	s := testsuite.New(t, &testsuite.Options{
		Worker: &worker.Options{
			Agents: []agent.Definition{{Name: "reader", Model: "m", Tools: []string{"read"}, Compaction: agent.CompactionPolicy{KeepLast: 2}}},
			Tools:  []tool.Tool{read}, Models: map[string]model.Model{"m": model.WithInfo(script, "m", small)},
		}, Model: script,
	})
	run := s.Start("reader", "Read it, and compare.", &client.StartOptions{Files: []client.FileInput{{Name: "chart.pdf", Text: "the sales", Data: []byte("%PDF-1.4")}}})
	require.Equal(t, "Three bars.", run.Completed().Text)

	var named, wrong, shownAgain bool
	for _, req := range script.Requests() {
		said := words(req.Messages)
		require.Contains(t, said, "["+chart+" (application/pdf, 8 bytes)]")
		if !strings.Contains(said, "[Files of the conversation before") {
			require.Len(t, req.Tools, 1)
			require.Len(t, req.Files, 1)
			continue
		}
		named = true
		wrong = wrong || strings.Contains(said, `there is no file "x.png"; there are: `+chart)
		require.Len(t, req.Tools, 2, "also where a further summary is asked for: the tools come first in a provider's cache")
		require.Equal(t, agent.ShowFileTool, req.Tools[1].Name)
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
