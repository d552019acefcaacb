package e2e

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/testsuite"
)

// A run that begins from a summary is shown a file of the run before when it asks, and so is a fork,
// which then has the file itself. No history has the bytes.
func TestAFileIsShownOnceMore(t *testing.T) {
	t.Parallel()
	show := testsuite.Reply{Calls: []testsuite.Call{{Tool: agent.ShowFileTool, Arguments: map[string]any{"file": "chart.png#9864fe5a"}}}}
	script := testsuite.NewScript(testsuite.Reply{Text: "I see."}, show, testsuite.Reply{Text: "Three bars."}, show, testsuite.Reply{Text: "Still three."})
	s := setup(t, agent.Definition{}, script, plot(nil))
	s.run(t, "What is this?", &client.StartOptions{Session: "again", Files: []client.FileInput{{Name: "chart.png", Data: standin.Picture()}}})
	run, out := s.run(t, "How many bars?", &client.StartOptions{Session: "again", Carry: agent.CarryCompact})
	require.Equal(t, "Three bars.", out.Text, "%v", out.Err())

	shown := func(session string) *agent.File {
		asked := script.Requests()
		last := asked[len(asked)-1]
		result := last.Messages[len(last.Messages)-1].Parts[0].Result
		require.NotNil(t, result)
		require.Equal(t, "[chart.png#9864fe5a (image/png, 68 bytes)]", result.Text)
		require.Len(t, result.Files, 1)
		f := result.Files[0].File
		require.Equal(t, session, f.Session)
		require.Equal(t, standin.Picture(), last.Files[f.Digest])
		return f
	}
	shown("again")
	asked := script.Requests()
	require.Len(t, asked[0].Tools, 2, "plot and await_resumption")
	require.Empty(t, asked[2].Files, "it begins from the summary")
	raw, err := json.Marshal(s.history(t, run.Session, run.ID))
	require.NoError(t, err)
	require.NotContains(t, string(raw), "iVBOR")
	listed := 0
	for _, err := range s.Files(t.Context(), "again") {
		require.NoError(t, err)
		listed++
	}
	require.Equal(t, 2, listed, "the summary only names it")

	anew, err := s.Fork(t.Context(), "again", &client.ForkOptions{NewSession: true, Session: "again-2", Text: "And now?"})
	require.NoError(t, err)
	fork, err := anew.Start(t.Context())
	require.NoError(t, err)
	out, err = fork.Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, "Still three.", out.Text, "%v", out.Err())
	own := shown("again-2")
	_, err = s.Delete(t.Context(), "again")
	require.NoError(t, err)
	got, err := s.File(t.Context(), own)
	require.NoError(t, err)
	require.Equal(t, standin.Picture(), got)
}
