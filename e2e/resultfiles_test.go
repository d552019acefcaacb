package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// plot shows a chart and a report. Its first attempt shows another file, and fails.
func plot(o *tool.Options) tool.Tool {
	return tool.New("plot", "plots", func(ctx context.Context, c *tool.Call, _ struct{}) (map[string]int, error) {
		files := []agent.FileInput{{Name: "chart.png", Text: "sales by month", Data: standin.Picture()}, {Name: "report.pdf", Data: []byte("%PDF-1.4 canary-4712")}}
		if c.Attempt < o.Attempts {
			files = []agent.FileInput{{Name: "draft.txt", Data: []byte("canary-4713")}}
		}
		for _, f := range files {
			if err := c.AddFile(ctx, f); err != nil {
				return nil, err
			}
		}
		if c.Attempt < o.Attempts {
			return nil, errors.New("once more")
		}
		return map[string]int{"bars": 3}, nil
	}, o)
}

var plots = testsuite.Reply{Calls: []testsuite.Call{{Tool: "plot", Arguments: map[string]any{}}}}

// What a tool shows reaches the model as bytes in every later turn, over another worker, a fork and
// another cluster; no history has it, and it goes with the session.
func TestFilesOfResultsGoByReference(t *testing.T) {
	t.Parallel()
	script := testsuite.NewScript(plots, testsuite.Reply{Text: "A chart."}, testsuite.Reply{Text: "Still."}, testsuite.Reply{Text: "As I said."})
	s := setup(t, agent.Definition{}, script, plot(&tool.Options{Attempts: 2}))
	run, out := s.run(t, "Plot it.", &client.StartOptions{Session: "plots"})
	require.Equal(t, "A chart.", out.Text, "%v", out.Err())

	asked := script.Requests()
	require.Len(t, asked, 2)
	r := asked[1].Messages[2].Parts[0].Result
	require.Equal(t, "{\"bars\":3}\n[chart.png#9864fe5a (image/png, 68 bytes)]\nsales by month\n[report.pdf#3345149d (application/pdf, 20 bytes)]", r.Text)
	shown := asked[1].Messages[2].Files()
	require.Len(t, shown, 2, "and none of the attempt before")
	require.Equal(t, agent.File{Session: "plots", Digest: shown[0].Digest, Size: 68, MediaType: "image/png", Name: "chart.png"}, *shown[0])
	require.Equal(t, standin.Picture(), asked[1].Files[shown[0].Digest])
	require.Equal(t, "%PDF-1.4 canary-4712", string(asked[1].Files[shown[1].Digest]))
	raw, err := json.Marshal(s.history(t, run.Session, run.ID))
	require.NoError(t, err)
	require.NotContains(t, string(raw), "canary-47")
	transcript, err := s.Transcript(t.Context(), "plots")
	require.NoError(t, err)
	kept := transcript[2].Parts[0].Result
	require.Equal(t, `{"bars":3}`, kept.Text, "the log has what the tool said")
	require.Equal(t, "sales by month", kept.Files[0].Text)

	s.worker.Stop() // its memory is gone
	s.work(t, agent.Definition{}, script, plot(&tool.Options{Attempts: 2}))
	next, err := s.Send(t.Context(), "plots", "And now?", nil)
	require.NoError(t, err)
	_, err = next.Result(t.Context())
	require.NoError(t, err)
	require.Len(t, script.Requests()[2].Files, 2)

	anew, err := s.Fork(t.Context(), "plots", &client.ForkOptions{NewSession: true, Session: "plots-2", Text: "Once more."})
	require.NoError(t, err)
	fork, err := anew.Start(t.Context())
	require.NoError(t, err)
	_, err = fork.Result(t.Context())
	require.NoError(t, err)
	require.Len(t, script.Requests()[3].Files, 2)

	there := elsewhere(t)
	_, err = there.bring(t, s.export(t, "plots", client.ExportOptions{}))
	require.NoError(t, err)
	got, err := there.File(t.Context(), shown[1])
	require.NoError(t, err)
	require.Equal(t, "%PDF-1.4 canary-4712", string(got))

	_, err = s.Delete(t.Context(), "plots")
	require.NoError(t, err)
	_, err = s.log().File(t.Context(), shown[1])
	require.NoError(t, err, "the fork shows it")
	_, err = s.Delete(t.Context(), "plots-2")
	require.NoError(t, err)
	_, err = s.log().File(t.Context(), shown[1])
	require.ErrorIs(t, err, agent.CodeChunkMissing)
}

// A failed call shows what it has, and a local tool may show files, too. A model that takes none
// within results gets them after these.
func TestFilesOfAFailedCall(t *testing.T) {
	t.Parallel()
	script := testsuite.NewScript(testsuite.Reply{Calls: []testsuite.Call{{Tool: "browse"}, {Tool: "look"}}}, testsuite.Reply{Text: "I see."})
	shows := func(name string, err error, o *tool.Options) tool.Tool {
		return tool.New(name, "shows", func(ctx context.Context, c *tool.Call, _ struct{}) (string, error) {
			if bad := c.AddFile(ctx, agent.FileInput{Name: name + ".png", Data: standin.Picture()}); bad != nil {
				return "", bad
			}
			return "seen", err
		}, o)
	}
	s := setup(t, agent.Definition{}, script, shows("browse", errors.New("page not found"), nil), shows("look", nil, &tool.Options{Local: true}))
	_, out := s.run(t, "Look.", nil)
	require.Equal(t, "I see.", out.Text, "%v", out.Err())
	parts := script.Requests()[1].Messages[2].Parts
	require.Len(t, parts, 4)
	require.Equal(t, "page not found\n[browse.png#9864fe5a (image/png, 68 bytes): it follows as file 1]", parts[0].Result.Text)
	require.Equal(t, "look.png", parts[1].Result.Files[0].File.Name)
	require.Equal(t, "[file 1, from a call of browse]", parts[2].Text)
	require.Equal(t, "browse.png", parts[3].File.Name)
}
