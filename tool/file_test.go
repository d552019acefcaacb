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
