package client

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
)

// flowWithAFile has the log of a flow's run whose input has a file, and that was sent another message.
// begun returns the last start.
func flowWithAFile(t *testing.T) (c *Client, begun func() agent.Start) {
	dir, err := store.OpenDir(t.TempDir(), nil)
	require.NoError(t, err)
	var last agent.Start
	c = New(&fake{begin: func(s agent.Start) (string, error) { last = s; return "02", nil }}, &Options{Store: dir})
	input := agent.TextMessage(agent.RoleUser, "old")
	parts, err := c.PutFiles(t.Context(), "s", FileInput{Name: "photo.pdf", Data: []byte("%PDF-1.4 photo")})
	require.NoError(t, err)
	input.Parts = append(input.Parts, parts...)
	sent := agent.TextMessage(agent.RoleUser, "be quick")
	events := []agent.Event{
		{Type: agent.EventRunStarted, Started: &agent.Started{Run: "01", Spec: &agent.Spec{Definition: agent.Definition{Name: "album"}, Flow: true}}},
		{Type: agent.EventMessage, Message: &input}, {Type: agent.EventTurnStarted}, {Type: agent.EventMessage, Message: &sent},
		{Type: agent.EventTurnEnded, Snapshot: &agent.TurnSnapshot{}},
		{Type: agent.EventRunCompleted, Outcome: &agent.Outcome{Run: "01", Agent: "album", Status: agent.StatusCompleted}},
	}
	for i := range events {
		events[i].Seq = int64(i + 1)
	}
	name, err := store.NewLog(dir).Seal(t.Context(), "", "s", "01", false, events)
	require.NoError(t, err)
	require.NoError(t, dir.PutHead(t.Context(), store.Head{V: 1, Session: "s", Version: 1, Run: "01", Agent: "album", Status: agent.StatusCompleted, Digest: name, Seq: int64(len(events))}))
	return c, func() agent.Start { return last }
}

// A fork with another input of a flow keeps the input's files, also in a session of its own, or has
// others instead.
func TestAFlowIsForkedWithFiles(t *testing.T) {
	c, begun := flowWithAFile(t)
	for session, want := range map[string]string{"s": "photo.pdf", "s-2": "photo.pdf", "s-3": "report.pdf"} {
		o := &ForkOptions{Edit: true, Text: "new"}
		if session != "s" {
			o.NewSession, o.Session = true, session
		}
		if want == "report.pdf" {
			o.Files = []FileInput{{Name: want, Data: []byte("%PDF-1.4 report")}}
		}
		fork, err := c.Fork(t.Context(), "s", o)
		require.NoError(t, err)
		_, err = fork.Start(t.Context())
		require.NoError(t, err)
		start := begun()
		require.True(t, start.From.ReplaceInput)
		require.Equal(t, "new", start.Input.Text)
		require.Len(t, start.Input.Parts, 1)
		require.Equal(t, []string{session, want}, []string{start.Input.Parts[0].File.Session, start.Input.Parts[0].File.Name})
	}
	_, err := c.Fork(t.Context(), "s", &ForkOptions{Text: "more", Files: []FileInput{{Name: "x.pdf", Data: []byte("%PDF-1.4")}}})
	require.ErrorIs(t, err, agent.CodeInvalidInput)
	require.ErrorContains(t, err, "a flow takes files only with its start")
}

// The text that stands for a deleted file does not become the input of a flow.
func TestAFlowIsNotForkedWithoutAFileOfItsInput(t *testing.T) {
	c, begun := flowWithAFile(t)
	fork, err := c.Fork(t.Context(), "s", &ForkOptions{Edit: true, Text: "new", NewSession: true, Session: "s-2"})
	require.NoError(t, err)
	i := slices.IndexFunc(fork.kept, func(p agent.Part) bool { return p.File != nil })
	gone := *fork.kept[i].File
	gone.Digest = "0" + gone.Digest[1:]
	fork.kept[i].File = &gone
	_, err = fork.Start(t.Context())
	require.ErrorIs(t, err, agent.CodeChunkMissing)
	require.Empty(t, begun())
}
