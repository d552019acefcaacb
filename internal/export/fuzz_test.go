package export

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
)

// Texts of all kinds come back as they went.
func FuzzRoundTrip(f *testing.F) {
	f.Add("plain", "s-1", int64(1))
	f.Add("<&>\u2028\"\\\x00", "é", int64(-1))
	f.Fuzz(func(t *testing.T, text, session string, lasts int64) {
		raw, err := json.Marshal(map[string]any{"v": 1, "text": text})
		require.NoError(t, err)
		c := Content{Head: store.Head{Session: strings.ToValidUTF8(session, "?"), Status: agent.StatusSuspended}, State: raw}
		c = c.Stamp("new", now, time.Duration(lasts))
		chunks := chain(t, text)
		read, err := Read(bytes.NewReader(file(t, c, chunks)), keys)
		require.NoError(t, err)
		c.Head.Digest = chunks[0].Digest
		want, err := json.Marshal(c)
		require.NoError(t, err)
		got, err := json.Marshal(read.Content)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
	})
}

// Whatever file is read, it is refused, or is one that was signed, to the byte.
func FuzzRead(f *testing.F) {
	c := sample("new")
	c.ID = "0196f0a0-0000-7000-8000-000000000000" // the same in every process
	whole := file(f, c, chain(f, "one", "two"))
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add(append(bytes.Clone(whole), whole...))
	f.Add(bytes.SplitAfter(whole, []byte("\n"))[0])
	f.Add([]byte(begins + `"signature":"","content":{"key":"new"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		read, err := Read(bytes.NewReader(data), keys)
		if err != nil {
			require.Contains(t, []agent.Code{agent.CodeInvalidInput, agent.CodeBadSignature, agent.CodeIncompatible}, agent.CodeOf(err), "%v", err)
			return
		}
		require.Equal(t, string(whole), string(data), "a file was taken that nobody has signed")
		for _, err := range read.Chunks() {
			require.NoError(t, err)
		}
	})
}

// Whatever state a signed export has, it is refused, or is one to continue with.
func FuzzState(f *testing.F) {
	for _, state := range []string{
		`{}`, `{"v":1,"phase":"ended"}`, `{"v":1,"phase":"resting","wait":{"id":"s-1","resting":true,"saved":true},"spec":{"name":"a"}}`,
		`{"v":1,"session":"s","phase":"working","wait":{"id":"s-1","saved":true},"spec":{"name":"a"},"calls":[{"id":"t1.1","state":"awaiting"}],"requests":[{"id":"q-1"}],"log":{"seq":3}}`,
		`{"v":1,"phase":"carrying","wait":{"saved":true},"spec":{},"children":[{"session":"s/b-1"}],"log":{"tail":[{"seq":1}]}}`,
	} {
		f.Add([]byte(state))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := Content{State: raw}.Machine()
		if err != nil {
			require.Contains(t, []agent.Code{agent.CodeInvalidInput, agent.CodeBusy, agent.CodeIncompatible}, agent.CodeOf(err), "%v", err)
			return
		}
		require.NotNil(t, s.Suspension())
		c, tail, err := Live(raw, packed)
		require.NoError(t, err)
		again, err := c.Machine()
		require.NoError(t, err)
		require.Equal(t, s.Suspension().ID, again.Suspension().ID)
		if tail != nil {
			require.NoError(t, store.NewSequence(tail.Digest).Take(tail.Data))
		}
	})
}
