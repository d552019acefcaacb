package mcp

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"
	"unicode"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/tool"
)

// shower shows media of an answer with the call's result, and returns how many bytes they are. It
// says so if they are not shown.
type shower func(media, uri string, data []byte) string

func (s *Server) shower(ctx context.Context, c *tool.Call) shower {
	return func(media, uri string, data []byte) string {
		// Text belongs into the result, where it is bounded and secrets are removed.
		if strings.HasPrefix(http.DetectContentType(data), "text/") {
			return unseen(len(data))
		}
		kind, _, _ := mime.ParseMediaType(media)
		f := agent.FileInput{Name: s.said(baseName(uri)), MediaType: kind, Data: data}
		err := c.AddFile(ctx, f)
		if errors.Is(err, agent.CodeInvalidInput) && kind != "" {
			// Servers write audio/wav or image/jpg, and some are wrong: the bytes know better.
			f.MediaType = ""
			err = c.AddFile(ctx, f)
		}
		// The call has had its effect, so its result matters more than why a file is missing.
		if err != nil {
			return unseen(len(data))
		}
		return fmt.Sprintf("%d bytes", len(data))
	}
}

// baseName returns the file's name in a URI; empty if it has none.
func baseName(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return ""
	}
	name := path.Base(u.Path)
	if name == "." || name == "/" || len(name) > 200 || strings.ContainsFunc(name, unicode.IsControl) || strings.Contains(name, `\`) {
		return ""
	}
	return name
}
