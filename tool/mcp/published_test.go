//go:build unix

package mcp_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/mcp"
	"github.com/stretchr/testify/require"
)

// published names the folder node_modules with servers that others publish, and with a Node.
// `.ci/run mcp` installs them.
const published = "FERMATA_MCP_SERVERS"

// start starts a published server in the sandbox. It may read folder.
func start(t *testing.T, name, folder string, arguments ...string) *mcp.Server {
	t.Helper()
	modules := os.Getenv(published)
	if modules == "" {
		t.Skip(published + " is not set; .ci/run mcp sets it")
	}
	command := append([]string{filepath.Join(modules, ".bin", "node"), filepath.Join(modules, "@modelcontextprotocol", name, "dist", "index.js")}, arguments...)
	s := mcp.New("theirs", command, &mcp.Options{AsRoot: true, Read: []string{modules, folder}, StartTimeout: soon})
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// shows calls a tool and returns its text and its files.
func shows(t *testing.T, s *mcp.Server, name string, arguments any) (string, []agent.FileInput) {
	t.Helper()
	raw, err := json.Marshal(arguments)
	require.NoError(t, err)
	c, files := testsuite.NewCall(tool.Call{Tool: "theirs__" + name, Arguments: raw})
	text, err := s.Call(t.Context(), c)
	require.NoError(t, err)
	return text, files()
}

// An image of the protocol's reference server is a file of the result, and stands in no text.
func TestPublishedServersShowImages(t *testing.T) {
	text, files := shows(t, start(t, "server-everything", t.TempDir(), "stdio"), "get-tiny-image", map[string]any{})
	require.Len(t, files, 1)
	require.Equal(t, "image/png", files[0].MediaType)
	_, err := png.DecodeConfig(bytes.NewReader(files[0].Data))
	require.NoError(t, err)
	require.Contains(t, text, "Here's the image you requested:\n[image, image/png, ")
	require.NotContains(t, text, base64.StdEncoding.EncodeToString(files[0].Data)[:40])
}

// An agent that calls the tool shows its picture to its model with the next request.
func TestPublishedServersShowImagesToAModel(t *testing.T) {
	s, script := stage(t, []testsuite.Reply{
		{Match: "^Show", Calls: []testsuite.Call{{Tool: "theirs__get-tiny-image"}}},
		{Match: "image you requested", Text: "I see it."},
	}, start(t, "server-everything", t.TempDir(), "stdio"))
	require.Equal(t, "I see it.", s.Start("clerk", "Show me the image.", nil).Completed().Text)
	asked := script.Requests()
	require.Len(t, asked, 2)
	require.Len(t, asked[1].Files, 1)
	for _, data := range asked[1].Files {
		_, err := png.DecodeConfig(bytes.NewReader(data))
		require.NoError(t, err)
	}
}

// The files of server-filesystem are files of the result, whose type the bytes decide: the server
// repeats them in its structured content, and knows few types.
func TestPublishedServersShowFiles(t *testing.T) {
	folder, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	pdf := append([]byte("%PDF-1.7\n"), make([]byte, 4000)...)
	large := append(bytes.Clone(photoPNG), make([]byte, 300<<10)...)
	for name, data := range map[string][]byte{"photo.png": photoPNG, "large.png": large, "spec.pdf": pdf} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), data, 0o600))
	}
	s := start(t, "server-filesystem", folder, folder)
	for name, want := range map[string]struct {
		text string
		file agent.FileInput
	}{
		"photo.png": {"[image, image/png, 68 bytes]", agent.FileInput{MediaType: "image/png", Data: photoPNG}},
		"large.png": {"[image, image/png, 307268 bytes]", agent.FileInput{MediaType: "image/png", Data: large}},
		"spec.pdf":  {"[resource, file://" + folder + "/spec.pdf, application/octet-stream, 4009 bytes]", agent.FileInput{Name: "spec.pdf", MediaType: "application/pdf", Data: pdf}},
	} {
		text, files := shows(t, s, "read_media_file", map[string]string{"path": filepath.Join(folder, name)})
		require.Equal(t, want.text, text, name)
		require.Equal(t, []agent.FileInput{want.file}, files, name)
	}
}
