package tool_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/toolcall"
	"github.com/fermata-agents/fermata/tool"
)

// stores is a call of a run whose store takes everything.
func stores() (*tool.Call, *toolcall.Hooks) {
	h := &toolcall.Hooks{PutFile: func(_ context.Context, name, mediaType string, data []byte) (*agent.File, error) {
		f := &agent.File{Session: "s", Digest: strings.Repeat("0", 64), Size: len(data), MediaType: mediaType, Name: name}
		return f, f.Check()
	}}
	return tool.Call{}.With(h), h
}

// A file that no model could be shown is refused before it is stored.
func TestFilesThatAResultCannotHave(t *testing.T) {
	require.ErrorIs(t, (&tool.Call{}).AddFile(t.Context(), agent.FileInput{Data: []byte("x")}), agent.CodeNotSetUp)
	c, h := stores()
	for code, f := range map[agent.Code][]agent.FileInput{
		agent.CodeInvalidInput: {{}, {MediaType: "image/png", Data: []byte("%PDF-1.4")}, {MediaType: "text/plain; charset=utf-8", Data: []byte("x")}},
		agent.CodeTooLarge:     {{Data: make([]byte, agent.MaxFile+1)}, {Data: []byte("x"), Text: strings.Repeat("x", agent.MaxFileText+1)}},
	} {
		for _, one := range f {
			require.ErrorIs(t, c.AddFile(t.Context(), one), code)
		}
	}
	require.Empty(t, h.Files())

	var all sync.WaitGroup
	for i := range agent.MaxFiles {
		all.Go(func() {
			if err := c.AddFile(t.Context(), agent.FileInput{Name: fmt.Sprintf("dir/%d.txt", i), Data: []byte("x")}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.ErrorIs(t, c.AddFile(t.Context(), agent.FileInput{Data: []byte("x")}), agent.CodeTooLarge)
	require.Len(t, h.Files(), agent.MaxFiles)
	require.Equal(t, "text/plain", h.Files()[0].File.MediaType)
	require.NotContains(t, h.Files()[0].File.Name, "/")
}

// An artifact needs a name, and a call saves so many.
func TestArtifactsThatACallCannotSave(t *testing.T) {
	require.ErrorIs(t, (&tool.Call{}).SaveArtifact(t.Context(), agent.FileInput{Name: "a.txt", Data: []byte("x")}), agent.CodeNotSetUp)
	c, h := stores()
	for code, f := range map[agent.Code][]agent.FileInput{
		agent.CodeInvalidInput: {
			{Data: []byte("x")}, {Name: "dir/a.txt", Data: []byte("x")}, {Name: "..", Data: []byte("x")}, {Name: " a", Data: []byte("x")}, {Name: "a\nb", Data: []byte("x")}, {Name: "a\xff", Data: []byte("x")},
			{Name: strings.Repeat("x", agent.MaxArtifactName+1), Data: []byte("x")}, {Name: "a.txt"}, {Name: "a.png", Data: []byte("text"), MediaType: "image/png"},
		},
		agent.CodeTooLarge: {{Name: "a", Data: make([]byte, agent.MaxFile+1)}},
	} {
		for _, one := range f {
			require.ErrorIs(t, c.SaveArtifact(t.Context(), one), code, "%q", one.Name)
		}
	}
	require.Empty(t, h.Artifacts())
	for i := range agent.MaxFiles {
		require.NoError(t, c.SaveArtifact(t.Context(), agent.FileInput{Name: fmt.Sprint(i, ".md"), Data: []byte("x")}))
	}
	require.ErrorIs(t, c.SaveArtifact(t.Context(), agent.FileInput{Name: "more", Data: []byte("x")}), agent.CodeTooLarge)
	require.Len(t, h.Artifacts(), agent.MaxFiles)
	require.Equal(t, agent.File{Session: "s", Digest: strings.Repeat("0", 64), Size: 1, MediaType: "text/markdown", Name: "0.md"}, h.Artifacts()[0])
	require.Empty(t, h.Files(), "the model is not shown what is saved")
}

// A model reads its mistake, and nothing is saved.
func TestSaveArtifactRefusesWhatNoArtifactCanBe(t *testing.T) {
	for arguments, want := range map[string]string{
		`{"name":"a/b.md","content":"x"}`: "without folders", `{"name":"a.md","content":""}`: "content is empty",
	} {
		c, h := stores()
		c.Arguments = []byte(arguments)
		_, err := tool.SaveArtifact().Call(t.Context(), c)
		require.ErrorIs(t, err, agent.CodeDenied)
		require.ErrorContains(t, err, want)
		require.Empty(t, h.Artifacts())
	}
	c, h := stores()
	c.Arguments = []byte(`{"name":"a.md","content":"# A"}`)
	said, err := tool.SaveArtifact().Call(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, "The text has 3 bytes.", said)
	require.Len(t, h.Artifacts(), 1)
}
