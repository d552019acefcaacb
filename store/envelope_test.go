package store

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// An envelope is read and checked without the content, whatever stands in that.
func TestAChainIsFollowedWithoutItsEvents(t *testing.T) {
	for _, session := range []string{"s", "a:b", `x","events":[`, "ä\u2028"} {
		d := open1(t)
		l := NewLog(d)
		first := say(t, d, session, `,"events":[{"prev":"no"}]`)
		second := say(t, d, session, `"prev":"no"`, "more")
		start, err := d.ChunkStart(t.Context(), second, maxEnvelope)
		require.NoError(t, err)
		var e Envelope
		require.NoError(t, e.read(second, start))
		before, err := l.envelope(t.Context(), first)
		require.NoError(t, err)
		require.Equal(t, Envelope{
			V: ChunkVersion, Kind: kindEvents, Session: session, First: 2, Last: 3, Before: []Ref{{first, 1, before.Size, 0}}, Size: e.Size, Content: e.Content,
		}, e)
		require.NotContains(t, string(start[:strings.IndexByte(string(start), '\n')]), "more")
	}
}

// planted makes the stored form of a chunk from a line and a content.
func planted(line, plain string) (string, []byte) {
	return ChunkPrefix("s") + ofChunk + digestOf([]byte(line)), packer().EncodeAll([]byte(plain), []byte(line+"\n"))
}

// What does not fit together is damaged, and what another build wrote is told apart
// from it: each format has a version of its own.
func TestWhatAnEnvelopeDoesNotSay(t *testing.T) {
	line := func(v int, kind, session, plain string) string {
		return fmt.Sprintf(`{"chunk":%d,"kind":%q,"session":%q,"first":1,"last":1,"size":%d,"content":%q}`, v, kind, session, len(plain), digestOf([]byte(plain)))
	}
	plain := `{"run":"r","events":[{"seq":1}]}`
	name, data := planted(line(ChunkVersion, kindEvents, "s", plain), plain)
	_, err := open(name, data)
	require.NoError(t, err)
	for why, c := range map[string]struct {
		line, plain string
		want        agent.Code
	}{
		"another content":     {line(ChunkVersion, kindEvents, "s", plain), `{"run":"r2","events":[{"seq":1}]}`, agent.CodeChunkDamaged},
		"another kind":        {line(ChunkVersion, kindBlob, "s", plain), plain, agent.CodeChunkDamaged},
		"another session's":   {line(ChunkVersion, kindEvents, "s2", plain), plain, agent.CodeChunkDamaged},
		"other numbers":       {line(ChunkVersion, kindEvents, "s", `{"run":"r","events":[{"seq":2}]}`), `{"run":"r","events":[{"seq":2}]}`, agent.CodeChunkDamaged},
		"a newer version":     {line(ChunkVersion+1, kindEvents, "s", plain), plain, agent.CodeIncompatible},
		"no version":          {line(0, kindEvents, "s", plain), plain, agent.CodeIncompatible},
		"a newer, other form": {`{"chunk":2,"kind":{"new":1}}`, plain, agent.CodeIncompatible},
	} {
		name, data := planted(c.line, c.plain)
		_, err := open(name, data)
		require.ErrorIs(t, err, c.want, why)
		require.ErrorIs(t, NewSequence(name).Take(data), c.want, why)
	}
	_, err = open(name[:len(name)-1]+"0", data)
	require.ErrorIs(t, err, agent.CodeChunkDamaged, "another envelope than the name says")

	d := open1(t)
	for _, v := range []int{0, HeadVersion + 1} {
		require.NoError(t, d.PutHead(t.Context(), Head{V: v, Version: 1, Session: fmt.Sprint("s", v), Run: "r"}))
		_, err := NewLog(d).Head(t.Context(), fmt.Sprint("s", v))
		require.ErrorIs(t, err, agent.CodeIncompatible, "a head of version %d", v)
	}
}
