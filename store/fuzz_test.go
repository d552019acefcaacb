package store

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// Whatever lies in a store under a digest, it is refused, or is what has that
// digest; and who follows the chain sees what they see who read it whole.
func FuzzChunk(f *testing.F) {
	for _, plain := range []string{
		``, `{}`, `{"v":1,"session":"s","run":"r","prev":"9f","events":[{"seq":1,"type":"message"}]}`, `{"v":2,"events":[]}`, `{"v":1,"events":[],"prev":"aa"}`,
		`{"v":1,"prev":"aa","Prev":"bb","events":[]}`, `{"v":1,"session":"a\",\"events\":","events":[]}`, `{"v":1,"x":{"events":1,"events":2},"prev":"c"}`, `{"v":1,"prev":"aa","events":[{}]`,
	} {
		f.Add([]byte(plain), []byte(plain))
		f.Add([]byte(plain), packer().EncodeAll([]byte(plain), nil))
	}
	f.Fuzz(func(t *testing.T, plain, stored []byte) {
		known := []agent.Code{agent.ChunkDamaged, agent.Incompatible}
		digest := digestOf(plain)
		packed := packer().EncodeAll(plain, nil)
		c, size, err := open(digest, packed)
		if err != nil {
			require.Contains(t, known, agent.CodeOf(err), "%v", err)
		} else {
			require.Equal(t, len(plain), size)
			prev, err := Unpack(digest, packed)
			require.NoError(t, err)
			require.Equal(t, c.Prev, prev)
		}
		if got, err := unpack(digest, stored); err == nil {
			require.True(t, bytes.Equal(plain, got), "it is not what has the digest")
		}
		if _, err := Unpack(digest, stored); err != nil {
			require.Contains(t, known, agent.CodeOf(err), "%v", err)
		}
	})
}

// What is packed is unpacked, whatever is in it.
func FuzzPack(f *testing.F) {
	f.Add("9f2c", "s", "r", "plain")
	f.Add("", `a","events":`, "\x00\xff", "<&>\u2028\"\\")
	f.Fuzz(func(t *testing.T, prev, session, run, text string) {
		for _, s := range []*string{&prev, &session, &run, &text} {
			*s = strings.ToValidUTF8(*s, "?") // JSON has no other
		}
		digest, data, err := Pack(prev, session, run, events(1, text))
		require.NoError(t, err)
		c, _, err := open(digest, data)
		require.NoError(t, err)
		back, err := Unpack(digest, data)
		require.NoError(t, err)
		require.Equal(t, c.Prev, back)
		again, _, err := Pack(c.Prev, c.Session, c.Run, c.Events)
		require.NoError(t, err)
		require.Equal(t, digest, again, "it is the same when it is packed again")
	})
}
