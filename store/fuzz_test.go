package store

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// Whatever lies in a store under a name, it is refused, or is what has that name; and
// who reads the envelope alone sees what they see who read all.
func FuzzChunk(f *testing.F) {
	for _, line := range []string{
		``, `{}`, `{"chunk":1,"kind":"events","session":"s","first":1,"last":1,"size":33,"content":"x"}`, `{"chunk":2}`, `{"chunk":1,"chunk":2}`,
		`{"chunk":1,"kind":"events","session":"s","before":[{"chunk":"aa"}],"Before":[]}`, `{"chunk":1,"session":"a\",\"events\":"}`,
	} {
		f.Add([]byte(line), []byte(`{"run":"r","events":[{"seq":1}]}`))
	}
	f.Fuzz(func(t *testing.T, line, plain []byte) {
		known := []agent.Code{agent.CodeChunkDamaged, agent.CodeIncompatible}
		name := ChunkPrefix("s") + ofChunk + digestOf(line)
		for _, packed := range [][]byte{packer().EncodeAll(plain, append(bytes.Clone(line), '\n')), append(append(bytes.Clone(line), '\n'), plain...), line} {
			c, err := open(name, packed)
			s := NewSequence(name)
			require.Equal(t, agent.CodeOf(err), agent.CodeOf(s.Take(packed)))
			if err != nil {
				require.Contains(t, known, agent.CodeOf(err), "%v", err)
				continue
			}
			require.Equal(t, c.Prev(), s.log)
			require.Len(t, s.files, len(c.Files))
			var e Envelope
			require.NoError(t, e.read(name, packed))
			require.Equal(t, c.Envelope, e)
			require.Equal(t, []any{digestOf(plain), len(plain)}, []any{e.Content, e.Size}, "it is not what has the name")
		}
	})
}

// What is sealed is opened, whatever is in it.
func FuzzPack(f *testing.F) {
	f.Add("s", "r", "plain")
	f.Add(`a","events":`, "\x00\xff", "<&>\u2028\"\\")
	f.Fuzz(func(t *testing.T, session, run, text string) {
		for _, s := range []*string{&session, &run, &text} {
			*s = strings.ToValidUTF8(*s, "?") // JSON has no other
		}
		made := &Chunk{Envelope: Envelope{Session: session}, content: content{Run: run, Events: events(1, text)}}
		data, err := seal(made)
		require.NoError(t, err)
		c, err := open(made.Name, data)
		require.NoError(t, err)
		again := &Chunk{Envelope: Envelope{Session: c.Session}, content: c.content}
		_, err = seal(again)
		require.NoError(t, err)
		require.Equal(t, made.Name, again.Name, "it is the same when it is packed again")
	})
}
