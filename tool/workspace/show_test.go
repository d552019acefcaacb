package workspace_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/toolcall"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/workspace"
)

// looks reads a file as a run does, and returns what the model is shown.
func (b bench) looks(t *testing.T, path string) (text string, files []agent.Part, stored [][]byte, err error) {
	t.Helper()
	raw, err := json.Marshal(args{"path": path})
	require.NoError(t, err)
	h := &toolcall.Hooks{PutFile: func(_ context.Context, name, mediaType string, data []byte) (*agent.File, error) {
		stored = append(stored, data)
		return &agent.File{MediaType: mediaType, Name: name, Size: len(data)}, nil
	}}
	for _, tl := range b.Tools() {
		if tl.Spec().Name == workspace.ReadTool {
			text, err = tl.Call(t.Context(), tool.Call{Session: b.session, Tool: workspace.ReadTool, Arguments: raw}.With(h))
		}
	}
	return text, h.Files(), stored, err
}

// A model is shown images and PDFs, whatever their names; the rules of secrets stay.
func TestReadShowsImagesAndPDFs(t *testing.T) {
	b := setup(t, nil)
	png := "\x89PNG\r\n\x1a\n" + string(make([]byte, 60))
	for path, want := range map[string]string{"a/chart.png": "image/png", "photo": "image/jpeg", "spec.txt": "application/pdf"} {
		data := map[string]string{"image/png": png, "image/jpeg": "\xff\xd8\xff\xe0\x00\x10JFIF", "application/pdf": "%PDF-1.4 of text alone"}[want]
		b.put(t, path, data)
		text, files, stored, err := b.looks(t, path)
		require.NoError(t, err)
		require.Contains(t, text, path+": "+want)
		require.Len(t, files, 1)
		require.Equal(t, agent.File{MediaType: want, Name: filepath.Base(path), Size: len(data)}, *files[0].File)
		require.Equal(t, data, string(bytes.Join(stored, nil)))
	}
	b.refused(t, "fs_read", args{"path": "photo"}, "photo is a binary file of 10 B")
	b.put(t, "song.mp3", "ID3\x00\x01")
	_, files, _, err := b.looks(t, "song.mp3")
	require.ErrorIs(t, err, agent.CodeDenied)
	require.Empty(t, files)
	b.put(t, "about.txt", "GIF89a is a format.")
	text, files, _, err := b.looks(t, "about.txt")
	require.NoError(t, err)
	require.Equal(t, "GIF89a is a format.", text)
	require.Empty(t, files)

	b.put(t, "large.png", png)
	require.NoError(t, os.Truncate(filepath.Join(b.root, "large.png"), agent.MaxFile+1))
	_, files, stored, err := b.looks(t, "large.png")
	require.ErrorIs(t, err, agent.CodeDenied)
	require.ErrorContains(t, err, "at most 21.0 MB are shown")
	require.Empty(t, files)
	require.Empty(t, stored)
	b.put(t, "id_rsa", png)
	b.link(t, "id_rsa", "innocent.png")
	for _, path := range []string{"id_rsa", "innocent.png"} {
		_, files, _, err = b.looks(t, path)
		require.ErrorIs(t, err, agent.CodeDenied)
		require.Empty(t, files)
	}
}
