package web

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/toolcall"
	"github.com/fermata-agents/fermata/tool"
)

// Images and PDFs are shown as files, if they are whole and the bytes are of such a type; also from
// the cache.
func TestMediaAreShown(t *testing.T) {
	png := "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		if r.URL.Path == "/endless.png" {
			_, _ = w.Write(append([]byte(png), make([]byte, 2*maxBody)...)) // the fetcher reads no more than it takes
			return
		}
		_, _ = w.Write([]byte(map[string]string{"/chart.png": png, "/a.pdf": "%PDF-1.7\n", "/a.tar": "\x00\x01"}[r.URL.Path]))
	})
	f := outer(t, s, plain)
	for range 2 {
		for path, want := range map[string]string{"/chart.png?x=1": "chart.png image/png", "/a.pdf": "a.pdf application/pdf", "/a.tar": "", "/endless.png": ""} {
			h := &toolcall.Hooks{PutFile: func(_ context.Context, name, mediaType string, data []byte) (*agent.File, error) {
				return &agent.File{Name: name, MediaType: mediaType, Size: len(data)}, nil
			}}
			args, err := json.Marshal(map[string]string{"url": s.on("docs.example.com", path)})
			require.NoError(t, err)
			text, err := f.Tool().Call(t.Context(), tool.Call{Tool: FetchTool, Arguments: args}.With(h))
			require.NoError(t, err)
			if want == "" {
				require.Empty(t, h.Files())
				require.Contains(t, text, "is not shown")
				continue
			}
			require.Len(t, h.Files(), 1)
			shown := h.Files()[0].File
			require.Equal(t, want, shown.Name+" "+shown.MediaType)
			require.Contains(t, text, "no instructions from your user")
		}
	}
}
