package activities

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
)

// The instructions end with the place of a sub-agent's own and what becomes of it, before what ends the
// run. An agent replaces the text, or leaves it out (HA-103).
func TestInstructionsNameAnOwnPlace(t *testing.T) {
	const worktree, directory = "You work in a git worktree of your own", "You work in a directory of your own"
	for name, c := range map[string]struct {
		at   *agent.OwnWorkspace
		text string
		want []string
	}{
		"none":                 {nil, "", nil},
		"a worktree":           {&agent.OwnWorkspace{Kind: agent.WorkspaceWorktree}, "", []string{worktree, "they are kept on a branch."}},
		"merged":               {&agent.OwnWorkspace{Kind: agent.WorkspaceWorktree, AtEnd: agent.WorkspaceMerge}, "", []string{worktree, "they are merged into that agent's files."}},
		"a directory":          {&agent.OwnWorkspace{Kind: agent.WorkspaceDirectory, AtEnd: agent.WorkspaceKeep}, "", []string{directory, "they are kept."}},
		"dropped":              {&agent.OwnWorkspace{Kind: agent.WorkspaceDirectory, AtEnd: agent.WorkspaceDrop}, "", []string{directory, "they are deleted."}},
		"another text":         {&agent.OwnWorkspace{Kind: agent.WorkspaceWorktree, AtEnd: agent.WorkspaceDrop}, "Yours, then {at_end}.", []string{"Yours, then deleted."}},
		"the text is left out": {&agent.OwnWorkspace{Kind: agent.WorkspaceWorktree}, agent.NoText, nil},
	} {
		spec := &agent.Spec{Workspace: c.at, Definition: agent.Definition{Instructions: "Code.", DoneSentinel: "END"}}
		if c.text != "" {
			spec.Texts = map[agent.TextName]string{agent.TextWorktree: c.text}
		}
		said := instructed(spec).Instructions
		require.Equal(t, "Code.", spec.Instructions, "the Spec is unchanged")
		require.Regexp(t, `^Code\.\n\n(?s:.*)END$`, said, name)
		for _, want := range c.want {
			require.Contains(t, said, want, name)
		}
		if c.want == nil {
			require.NotContains(t, said, "work in", name)
			require.NotContains(t, said, "\n-\n", name)
		}
	}
}

// Every kind of correction is in requests until the run is suspended, and in none after it, also of
// the session's next run. What checks and hooks say stays (PA-24).
func TestWhichNotesOutliveASuspension(t *testing.T) {
	var events []agent.Event
	add := func(e agent.Event) { e.Seq = int64(len(events)) + 1; events = append(events, e) }
	for _, note := range []agent.Note{agent.NoteNudge, agent.NoteRepair, agent.NoteRetry, agent.NoteRecovery, agent.NoteVerify, agent.NoteHook, agent.NoteEvent} {
		m := agent.TextMessage(agent.RoleUser, string(note))
		m.Note = note
		add(agent.Event{Type: agent.EventMessage, Message: &m})
	}
	shown := func() (texts []string) {
		log := (&store.View{}).With(events, int64(len(events)))
		for _, e := range requestEntries(log, log.Entries(), &agent.Spec{}) {
			require.Equal(t, agent.RoleUser, e.Role, "the model's messages stay apart")
			texts = append(texts, e.Text())
		}
		require.Equal(t, "nudge", log.Messages()[0].Text(), "the transcript keeps it")
		return texts
	}
	require.Equal(t, []string{"nudge", "repair", "retry", "recovery", "verify", "hook", "event"}, shown())
	add(agent.Event{Type: agent.EventRunSuspended, Suspension: &agent.Suspension{ID: "s-1"}})
	add(agent.Event{Type: agent.EventRunCancelled, Outcome: &agent.Outcome{Status: agent.StatusCancelled}})
	require.Equal(t, []string{"Continue.", "Continue.", "Continue.", "Continue.", "verify", "hook", "event"}, shown())
}

// A request does not end with the part of a reply that an interrupt left, also without the note about the
// suspension.
func TestNoRequestEndsWithTheModelsWords(t *testing.T) {
	spec := &agent.Spec{Definition: agent.Definition{Texts: map[agent.TextName]string{agent.TextResumeNote: agent.NoText}}}
	left := agent.TextMessage(agent.RoleAssistant, "one two")
	asked := ModelInput{}.messages(spec, []agent.Message{agent.TextMessage(agent.RoleUser, "go"), left})
	require.Equal(t, agent.RoleUser, asked[len(asked)-1].Role, "%+v", asked)
	left.Note = agent.NotePauseTurn
	asked = ModelInput{}.messages(spec, []agent.Message{agent.TextMessage(agent.RoleUser, "go"), left})
	require.Len(t, asked, 2, "a reply that the provider paused goes on from its end")
}
