package e2e

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/testsuite"
)

// An image reaches the model as its bytes in every turn, over messages, a fork and another
// cluster; no history has them, and they go with the session.
func TestFilesGoByReference(t *testing.T) {
	t.Parallel()
	script := testsuite.NewScript(testsuite.Reply{Text: "A chart."}, testsuite.Reply{Text: "A report."}, testsuite.Reply{Text: "As I said."}, testsuite.Reply{Text: "Still."})
	s := setup(t, agent.Definition{}, script)
	chart := client.FileInput{Name: "docs/chart.png", Text: "sales by month", Data: standin.Picture()}
	report := client.FileInput{Name: "report.pdf", Data: []byte("%PDF-1.4 canary-4711")}
	run, out := s.run(t, "What is this?", &client.StartOptions{Session: "files", Files: []client.FileInput{chart}})
	require.Equal(t, "A chart.", out.Text)
	next, err := s.Send(t.Context(), "files", "And this?", &client.SendOptions{Files: []client.FileInput{report, chart}})
	require.NoError(t, err)
	_, err = next.Result(t.Context())
	require.NoError(t, err)

	asked := script.Requests()
	require.Len(t, asked, 2)
	last := asked[1]
	var shown []*agent.File
	for _, m := range last.Messages {
		shown = append(shown, m.Files()...)
	}
	require.Len(t, shown, 3)
	require.Len(t, last.Files, 2, "the same bytes are sent as one")
	require.Equal(t, agent.File{Session: "files", Digest: shown[0].Digest, Size: len(chart.Data), MediaType: "image/png", Name: "chart.png"}, *shown[0])
	require.Equal(t, chart.Data, last.Files[shown[0].Digest])
	require.Equal(t, report.Data, last.Files[shown[1].Digest])
	for _, r := range []*client.Run{run, next} {
		raw, err := json.Marshal(s.history(t, r.Session, r.ID))
		require.NoError(t, err)
		require.NotContains(t, string(raw), "canary-4711")
	}
	got, err := s.File(t.Context(), shown[1])
	require.NoError(t, err)
	require.Equal(t, report.Data, got)

	anew, err := s.Fork(t.Context(), "files", &client.ForkOptions{NewSession: true, Session: "files-2", Text: "Once more."})
	require.NoError(t, err)
	fork, err := anew.Start(t.Context())
	require.NoError(t, err)
	_, err = fork.Result(t.Context())
	require.NoError(t, err)
	require.Len(t, script.Requests()[2].Files, 2)

	there := elsewhere(t)
	_, err = there.bring(t, s.export(t, "files", client.ExportOptions{}))
	require.NoError(t, err)
	moved := testsuite.NewScript(testsuite.Reply{Text: "Here, too."})
	there.work(t, agent.Definition{}, moved)
	again, err := there.Send(t.Context(), "files", "What was it?", nil)
	require.NoError(t, err)
	_, err = again.Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, report.Data, moved.Requests()[0].Files[shown[1].Digest])

	_, err = s.Delete(t.Context(), "files")
	require.NoError(t, err)
	_, err = s.File(t.Context(), shown[1])
	require.NoError(t, err, "the fork shows it")
	_, err = s.Delete(t.Context(), "files-2")
	require.NoError(t, err)
	_, err = s.log().File(t.Context(), shown[1])
	require.ErrorIs(t, err, agent.CodeChunkMissing)
}

// A model that can't read a file gets it in words, and nobody gets another session's file.
func TestFilesThatAModelDoesNotGet(t *testing.T) {
	t.Parallel()
	script := testsuite.NewScript(testsuite.Reply{Text: "I see."})
	s := setup(t, agent.Definition{}, script)
	_, out := s.run(t, "Read these.", &client.StartOptions{Session: "words", Files: []client.FileInput{
		{Name: "notes.md", Data: []byte("# Buy milk")}, {Name: "song.mp3", MediaType: "audio/mpeg", Text: "a birthday song", Data: []byte("ID3\x03")},
	}})
	require.Equal(t, agent.StatusCompleted, out.Status)
	text := script.Requests()[0].Messages[0].Text()
	require.Contains(t, text, "[notes.md#576d085a (text/markdown, 10 bytes)]\n# Buy milk")
	require.Contains(t, text, "[song.mp3#23bd6ce9 (audio/mpeg, 4 bytes): you can't read files of this type]")
	require.Contains(t, text, "a birthday song")

	parts, err := s.PutFiles(t.Context(), "words", client.FileInput{Data: []byte("theirs")})
	require.NoError(t, err)
	run, err := s.Start(t.Context(), "tester", "Show me.", &client.StartOptions{Session: "thief", Parts: parts})
	require.NoError(t, err)
	stolen, err := run.Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, agent.StatusFailed, stolen.Status)
	require.Equal(t, agent.CodeInvalidInput, stolen.Error.Code)
	require.Equal(t, "input.parts[0].file.session", stolen.Error.Path)
	require.Len(t, script.Requests(), 1)

	_, err = s.Start(t.Context(), "tester", "Look.", &client.StartOptions{Files: []client.FileInput{{Name: "x.png", MediaType: "image/png", Data: []byte("%PDF-1.4")}}})
	require.ErrorIs(t, err, agent.CodeInvalidInput)
}

// A provider that refuses a file does not end the conversation: it is asked once more without.
func TestAFileThatTheProviderRefuses(t *testing.T) {
	t.Parallel()
	refusal := testsuite.Failure{Kind: agent.FaultBadRequest, Message: "could not process image", HTTP: 400}
	script := testsuite.NewScript(testsuite.Reply{Match: "you could not read it", Text: "I can't see it."}, testsuite.Reply{Text: "never", Fail: []testsuite.Failure{refusal}})
	s := setup(t, agent.Definition{}, script)
	_, out := s.run(t, "What is this?", &client.StartOptions{Files: []client.FileInput{{Name: "broken.png", Data: standin.Picture()}}})
	require.Equal(t, "I can't see it.", out.Text, "%v", out.Err())
	asked := script.Requests()
	require.Len(t, asked, 2)
	require.Len(t, asked[0].Files, 1)
	require.Empty(t, asked[1].Files)
	require.Contains(t, asked[1].Messages[0].Text(), "[broken.png#9864fe5a (image/png, 68 bytes): you could not read it]")
}

// Answers and resumes show files, too.
func TestFilesOfAnswersAndResumes(t *testing.T) {
	t.Parallel()
	script := testsuite.NewScript(
		testsuite.Reply{Calls: []testsuite.Call{{Tool: agent.AskUserTool, Arguments: map[string]any{"question": "Which chart?"}}}},
		testsuite.Reply{Text: "I see both."}, testsuite.Reply{Text: "And this."},
	)
	s := setup(t, agent.Definition{Tools: []string{agent.AskUserTool}}, script)
	run, err := s.Start(t.Context(), "tester", "Look at my chart.", &client.StartOptions{Session: "answers"})
	require.NoError(t, err)
	out := s.rest(t, run)
	chart := client.FileInput{Name: "chart.png", Text: "sales by month", Data: standin.Picture()}
	_, err = run.Pause(t.Context(), "", nil)
	require.NoError(t, err)
	_, err = s.Answer(t.Context(), out.Suspension.Requests[0], "This one", &client.AnswerOptions{Files: []client.FileInput{chart}})
	require.NoError(t, err)

	// While the answer waits, the session moves with its file.
	there := elsewhere(t)
	moved := testsuite.NewScript(testsuite.Reply{Match: "(?s).*", Text: "I see it here."})
	there.work(t, agent.Definition{Tools: []string{agent.AskUserTool}}, moved)
	_, err = there.bring(t, s.export(t, "answers", client.ExportOptions{}))
	require.NoError(t, err)

	for _, c := range []struct {
		*stage
		*testsuite.Script
	}{{s, script}, {there, moved}} {
		run, err := c.Get(t.Context(), "answers")
		require.NoError(t, err)
		_, err = run.Resume(t.Context(), &client.ResumeOptions{Files: []client.FileInput{{Name: "report.pdf", Data: []byte("%PDF-1.4 canary-4712")}}})
		require.NoError(t, err)
		_, err = run.Result(t.Context())
		require.NoError(t, err)
		asked := c.Requests()
		last := asked[len(asked)-1]
		said := slices.DeleteFunc(slices.Clone(last.Messages), func(m agent.Message) bool { return m.Note != "" })
		n := len(said)
		require.Equal(t, "This one", said[n-3].Parts[0].Result.Text)
		require.Len(t, said[n-2].Files(), 1, "%+v", said)
		require.Equal(t, "chart.png", said[n-2].Files()[0].Name)
		require.Equal(t, "Files with the answer to: Which chart?[chart.png#9864fe5a (image/png, 68 bytes)]sales by month", said[n-2].Text())
		require.Equal(t, chart.Data, last.Files[said[n-2].Files()[0].Digest])
		require.Equal(t, []byte("%PDF-1.4 canary-4712"), last.Files[said[n-1].Files()[0].Digest])
	}
	raw, err := json.Marshal(s.history(t, "answers", run.ID))
	require.NoError(t, err)
	require.NotContains(t, string(raw), "canary-4712")
}

// An edited message keeps its files, also in a session of its own, or has others instead.
func TestForkWithFiles(t *testing.T) {
	t.Parallel()
	script := testsuite.NewScript(testsuite.Reply{Text: "I see.", Repeat: 4})
	s := setup(t, agent.Definition{}, script)
	chart := client.FileInput{Name: "chart.png", Text: "sales", Data: standin.Picture()}
	s.run(t, "What is this?", &client.StartOptions{Session: "edit", Files: []client.FileInput{chart}})
	for session, o := range map[string]client.ForkOptions{
		"edit":   {Edit: true},
		"edit-2": {Edit: true, NewSession: true, Session: "edit-2"},
		"edit-3": {Edit: true, NewSession: true, Session: "edit-3", Files: []client.FileInput{{Name: "report.pdf", Data: []byte("%PDF-1.4")}}},
	} {
		o.Text = "What is in " + session + "?"
		fork, err := s.Fork(t.Context(), "edit", &o)
		require.NoError(t, err)
		run, err := fork.Start(t.Context())
		require.NoError(t, err)
		_, err = run.Result(t.Context())
		require.NoError(t, err)
		asked := script.Requests()
		m := asked[len(asked)-1].Messages[0]
		require.Contains(t, m.Text(), o.Text)
		require.Len(t, m.Files(), 1)
		require.Equal(t, session, m.Files()[0].Session)
		want := "chart.png"
		if len(o.Files) > 0 {
			want = "report.pdf"
		} else {
			require.Contains(t, m.Text(), "sales")
		}
		require.Equal(t, want, m.Files()[0].Name)
	}
	_, err := s.Delete(t.Context(), "edit")
	require.NoError(t, err)
	for f, err := range s.Files(t.Context(), "edit-2") {
		require.NoError(t, err)
		_, err = s.File(t.Context(), &f.File)
		require.NoError(t, err)
	}
}
