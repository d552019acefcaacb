package client

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/export"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
)

// An import with several faults is refused for the first of them: its answer, the signature, the
// version, the age, and whether it was used, in this order. Nothing changes (PA-17).
func TestTheOrderInWhichAnExportIsRefused(t *testing.T) {
	ours, err := signals.NewSigner("k")
	require.NoError(t, err)
	theirs, err := signals.NewSigner("k")
	require.NoError(t, err)
	dir, err := store.OpenDir(t.TempDir(), nil)
	require.NoError(t, err)
	c := New(&fake{}, &Options{Store: dir})
	bring := func(content export.Content, key signals.Signer, answers ...agent.AnswerTo) error {
		var file bytes.Buffer
		_, err := export.Write(&file, content, key, func(func(store.Packed, error) bool) {})
		require.NoError(t, err)
		_, err = c.Import(t.Context(), bytes.NewReader(file.Bytes()), &ImportOptions{Keys: ours.Keys(), Answers: answers})
		return err
	}
	answer := func(text string) agent.AnswerTo {
		return agent.AnswerTo{Request: "q-1", Answer: &agent.AnswerCommand{Text: text}}
	}
	fresh := export.Content{Head: store.Head{V: 1, Session: "s", Run: "r", Agent: "a", Status: agent.StatusCompleted}}.Stamp("k", time.Now(), 0)
	require.NoError(t, dir.PutHead(t.Context(), store.Head{V: 1, Session: "s", Version: 1, Imported: fresh.ID}))
	expired := fresh
	expired.Expires = time.Now().Add(-time.Hour)
	newer := expired
	newer.V++
	token, files := answer("Rome"), answer("Rome")
	token.Answer.Token, files.Answer.Parts = "t", []agent.Part{{Type: agent.PartFile, File: &agent.File{}}}
	for name, bad := range map[string]agent.AnswerTo{
		"blank": answer(" "), "empty": answer(""), "none": {Request: "q-1"}, "of no request": {Answer: &agent.AnswerCommand{Text: "Rome"}}, "with a token": token, "with files": files,
	} {
		require.ErrorIs(t, bring(newer, theirs, bad), agent.CodeInvalidInput, name)
		require.ErrorIs(t, bring(newer, theirs, answer("Rome"), bad), agent.CodeInvalidInput, name)
	}
	require.ErrorIs(t, bring(newer, theirs, answer("Rome"), answer("Paris")), agent.CodeInvalidInput, "one request, twice")
	require.ErrorIs(t, bring(newer, theirs, answer(strings.Repeat("x", agent.MaxPayload-startFrame))), agent.CodeTooLarge)
	for _, answers := range [][]agent.AnswerTo{nil, {answer("Rome")}} {
		require.ErrorIs(t, bring(newer, theirs, answers...), agent.CodeBadSignature)
		require.ErrorIs(t, bring(newer, ours, answers...), agent.CodeIncompatible)
		require.ErrorIs(t, bring(expired, ours, answers...), agent.CodeExpired)
	}
	require.ErrorIs(t, bring(fresh, ours, answer("Rome")), agent.CodeClosed, "its run has ended, and waits for no answer")
	require.ErrorIs(t, bring(fresh, ours), agent.CodeUsed)
	head, err := dir.Head(t.Context(), "s")
	require.NoError(t, err)
	require.EqualValues(t, 1, head.Version, "nothing has changed")
}

// An export that names another session's file without its bytes does not get them from the store.
func TestAnImportGetsNoFileOfAnotherSession(t *testing.T) {
	key, err := signals.NewSigner("k")
	require.NoError(t, err)
	open := func() store.Store {
		s, err := store.OpenDir(t.TempDir(), nil)
		require.NoError(t, err)
		return s
	}
	here, there := open(), store.NewLog(open())
	secret, err := store.NewLog(here).PutFile(t.Context(), "victim", "plan.txt", "text/plain", []byte("secret"))
	require.NoError(t, err)
	for session, want := range map[string]error{"s": agent.CodeInvalidInput, "victim": nil} {
		shows := agent.Event{Seq: 1, Type: agent.EventMessage, Message: &agent.Message{Role: agent.RoleUser, Parts: []agent.Part{{Type: agent.PartFile, File: secret}}}}
		name, err := there.Seal(t.Context(), "", session, "r", false, []agent.Event{shows})
		require.NoError(t, err)
		log, err := there.Store().Chunk(t.Context(), name)
		require.NoError(t, err)
		content := export.Content{Head: store.Head{V: 1, Session: session, Run: "r", Agent: "a", Status: agent.StatusCompleted, Digest: name, Seq: 1}}.Stamp("k", time.Now(), 0)
		var file bytes.Buffer
		seq := content.Sequence()
		_, err = export.Write(&file, content, key, func(yield func(store.Packed, error) bool) {
			require.NoError(t, seq.Take(log))
			_ = yield(store.Packed{Digest: name, Data: log}, nil) && yield(store.Packed{Digest: seq.Next()}, nil)
		})
		require.NoError(t, err)
		_, err = New(&fake{}, &Options{Store: here}).Import(t.Context(), bytes.NewReader(file.Bytes()), &ImportOptions{Keys: key.Keys()})
		require.ErrorIs(t, err, want, session)
	}
}
