package lock

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/tool"
)

func digest(of string) string { return digestPrefix + strings.Repeat(of, 64) }

// The skills that were used first are pinned. Later a new and a changed one are left out until
// somebody accepts them, one or all.
func TestSkillsArePinned(t *testing.T) {
	f := At(filepath.Join(t.TempDir(), "fermata.lock"))
	old := map[string]string{"refunds": digest("a"), "letters": digest("b")}
	_, was, err := f.CompareSkills("desk", old)
	require.NoError(t, err)
	require.False(t, was)
	_, err = os.Stat(f.Path())
	require.ErrorIs(t, err, os.ErrNotExist, "who compares writes nothing")
	for _, want := range []bool{true, false} {
		changes, first, err := f.FilterSkills("desk", old)
		require.NoError(t, err)
		require.Empty(t, changes)
		require.Equal(t, want, first)
	}
	now := map[string]string{"refunds": digest("c"), "wires": digest("d")} // letters are gone: no change
	differ := []tool.Change{{Name: "desk/refunds", Digest: digest("c")}, {Name: "desk/wires", New: true, Digest: digest("d")}}
	changes, _, err := f.FilterSkills("desk", now)
	require.NoError(t, err)
	require.Equal(t, differ, changes)
	changes, was, err = f.CompareSkills("desk", now)
	require.NoError(t, err)
	require.True(t, was)
	require.Equal(t, differ, changes)

	require.NoError(t, f.AcceptOne("desk/wires", digest("d")))
	changes, _, err = f.FilterSkills("desk", now)
	require.NoError(t, err)
	require.Equal(t, differ[:1], changes)
	require.NoError(t, f.AcceptSkills("desk", now))
	changes, _, err = f.FilterSkills("desk", now)
	require.NoError(t, err)
	require.Empty(t, changes)
	changes, _, err = f.FilterSkills("desk", map[string]string{"letters": digest("b")})
	require.NoError(t, err)
	require.Len(t, changes, 1, "a skill that is gone when all are accepted has to be accepted again")
	require.ErrorIs(t, f.AcceptOne("desk/wires", "sha256:12"), agent.CodeInvalidInput)
}

// Tools and skills of a server are pinned apart: each at its own first use, and neither forgets the
// other. A file from before skills were pinned is one without any.
func TestSkillsAndToolsArePinnedApart(t *testing.T) {
	words, skills := "Use look first.", map[string]string{"refunds": digest("a")}
	tools := listed(map[string]string{"look": "Looks."})
	changed := map[string]string{"refunds": digest("b")}
	check := func(f *File) {
		changes, first, err := f.FilterSkills("shop", changed)
		require.NoError(t, err)
		require.False(t, first)
		require.Len(t, changes, 1)
		_, changes, err = hold(f, "shop", listed(map[string]string{"look": "Sends."}), &words)
		require.NoError(t, err)
		require.Len(t, changes, 1)
	}
	t.Run("skills first", func(t *testing.T) {
		f := At(filepath.Join(t.TempDir(), "fermata.lock"))
		_, first, err := f.FilterSkills("shop", skills)
		require.NoError(t, err)
		require.True(t, first)
		// No tools, but words: they are new to nobody.
		_, changes, err := hold(f, "shop", nil, &words)
		require.NoError(t, err)
		require.Empty(t, changes)
		kept, changes, err := hold(f, "shop", tools, &words)
		require.NoError(t, err)
		require.Len(t, kept, 1)
		require.Empty(t, changes)
		check(f)
		require.NoError(t, f.Accept("shop", tools, words))
		check(f)
	})
	t.Run("one skill accepted first", func(t *testing.T) {
		f := At(filepath.Join(t.TempDir(), "fermata.lock"))
		require.NoError(t, f.AcceptOne("shop/refunds", digest("a")))
		held, err := f.Filter("shop", tools, &words)
		require.NoError(t, err)
		require.True(t, held.New)
		check(f)
	})
	t.Run("an old file", func(t *testing.T) {
		f := At(filepath.Join(t.TempDir(), "fermata.lock"))
		require.NoError(t, os.WriteFile(f.Path(), []byte(`{"v":1,"sources":{"shop":{"instructions":"`+digestOf(words)+`","tools":{"shop__look":"`+Digest(tools[0])+`"}}}}`), 0o600))
		_, first, err := f.FilterSkills("shop", skills)
		require.NoError(t, err)
		require.True(t, first)
		check(f)
	})
}

// Workers that start at once pin one list, and each goes without what differs from it. Without a
// file that can be used there are no skills.
func TestSkillsOfWorkersThatStartAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fermata.lock")
	lists := []map[string]string{{"refunds": digest("a")}, {"refunds": digest("b")}}
	var all sync.WaitGroup
	var mu sync.Mutex
	pinned, left := 0, 0
	for i := range 20 {
		all.Go(func() {
			changes, first, err := At(path).FilterSkills("desk", lists[i%2])
			mu.Lock()
			defer mu.Unlock()
			require.NoError(t, err)
			left += len(changes)
			if first {
				pinned++
			}
		})
	}
	all.Wait()
	require.Equal(t, []int{1, 10}, []int{pinned, left})

	require.NoError(t, os.WriteFile(path, []byte("<<<<<<< HEAD\n"), 0o600))
	_, _, err := At(path).FilterSkills("desk", lists[0])
	require.ErrorContains(t, err, path+" can't be read")
	_, _, err = At(filepath.Join(path, "none")).FilterSkills("desk", lists[0])
	require.Error(t, err)
	none := filepath.Join(t.TempDir(), "none", "fermata.lock")
	_, first, err := At(none).FilterSkills("desk", lists[0])
	require.ErrorContains(t, err, "can't be written")
	require.False(t, first)
}
