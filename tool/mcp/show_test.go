//go:build unix

package mcp_test

import (
	"context"
	"strings"
	"testing"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/mcp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

const wav = "RIFF\x04\x00\x00\x00WAVE"

// gallery is a server that shows things.
func gallery() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "gallery", Version: "1"}, nil)
	png := &sdk.ImageContent{MIMEType: "image/png", Data: photoPNG}
	blob := func(uri, kind, data string) *sdk.EmbeddedResource {
		return &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: uri, MIMEType: kind, Blob: []byte(data)}}
	}
	add := func(name string, r *sdk.CallToolResult) {
		s.AddTool(&sdk.Tool{Name: name, InputSchema: map[string]any{"type": "object"}}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return r, nil })
	}
	add("media", &sdk.CallToolResult{Content: []sdk.Content{
		&sdk.TextContent{Text: "first"}, png, &sdk.AudioContent{MIMEType: "audio/wav", Data: []byte(wav)},
		&sdk.ImageContent{MIMEType: "image/png", Data: []byte("\xff\xd8\xff\xe0\x00\x10JFIF")},
		blob("file:///a/all%20of%20it.zip", "application/zip; x=y", "PK\x03\x04"), blob("file:///a/s3cret", "x", "\x00\x01"), blob("x://y/a%0Ab", "x/y", "\x00\x02"),
	}})
	var many []sdk.Content
	for range agent.MaxFiles + 1 {
		many = append(many, png)
	}
	add("many", &sdk.CallToolResult{Content: many})
	add("fails", &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: "no page"}, png}})
	s.AddResource(&sdk.Resource{URI: "file:///chart.png", Name: "chart"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: "file:///chart.png", MIMEType: "image/png", Blob: photoPNG}}}, nil
	})
	return s
}

var photoPNG = append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 60)...)

// The model is shown media that a server returns, by what they are and not by what the server says,
// and the text has a line for each.
func TestMediaAreShown(t *testing.T) {
	r := reach(t, serveHTTP(t, httpHandler(gallery(), nil)).URL, mcp.Options{Resources: true, Headers: map[string]string{"Authorization": "s3cret"}})
	call := func(name, arguments string) (string, []agent.FileInput, error) {
		c, files := testsuite.NewCall(tool.Call{Tool: "tickets__" + name, Arguments: []byte(arguments)})
		text, err := r.Call(t.Context(), c)
		return text, files(), err
	}
	text, files, err := call("media", "{}")
	require.NoError(t, err)
	require.Equal(t, strings.Join([]string{
		"first", "[image, image/png, 68 bytes]", "[audio, audio/wav, 12 bytes]", "[image, image/png, 10 bytes]",
		"[resource, file:///a/all%20of%20it.zip, application/zip; x=y, 4 bytes]", "[resource, file:///a/[Authorization], x, 2 bytes]", "[resource, x://y/a%0Ab, x/y, 2 bytes]",
	}, "\n"), text)
	require.Equal(t, []agent.FileInput{
		{MediaType: "image/png", Data: photoPNG}, {MediaType: "audio/wave", Data: []byte(wav)}, {MediaType: "image/jpeg", Data: []byte("\xff\xd8\xff\xe0\x00\x10JFIF")},
		{Name: "all of it.zip", MediaType: "application/zip", Data: []byte("PK\x03\x04")},
		{Name: "[Authorization]", MediaType: "application/octet-stream", Data: []byte("\x00\x01")}, {MediaType: "x/y", Data: []byte("\x00\x02")},
	}, files)

	text, files, err = call("many", "{}")
	require.NoError(t, err)
	require.Len(t, files, agent.MaxFiles)
	require.Equal(t, 1, strings.Count(text, "not shown"))
	_, files, err = call("fails", "{}")
	require.EqualError(t, err, "no page\n[image, image/png, 68 bytes]")
	require.Len(t, files, 1)
	text, files, err = call("read_resource", `{"uri":"file:///chart.png"}`)
	require.NoError(t, err)
	require.Equal(t, "[resource, file:///chart.png, image/png, 68 bytes]", text)
	require.Equal(t, "chart.png", files[0].Name)
}
