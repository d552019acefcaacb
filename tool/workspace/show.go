package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/tool"
)

const pdf = "application/pdf"

// media are the types of files that models look at. A file is of one by its first bytes, whatever
// its name is.
var media = []string{"image/png", "image/jpeg", "image/gif", "image/webp", pdf}

// show shows an image or a PDF to the model. It reports false for another file, and for a call
// that can show none.
func show(ctx context.Context, c *tool.Call, f *os.File, path, place string, bytes int64) (text string, isMedia bool, err error) {
	head := make([]byte, 512)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", false, nil // reading it as a text says why
	}
	kind := http.DetectContentType(head[:n])
	// A text may begin with "GIF89a", too. Of PDFs, some have only text at their beginning.
	if !slices.Contains(media, kind) || kind != pdf && !slices.Contains(head[:n], 0) {
		return "", false, nil
	}
	if bytes > agent.MaxFile {
		return "", true, refuse(ReadTool, "%s is of type %s and has %s; at most %s are shown", shown(path), kind, size(bytes), size(agent.MaxFile))
	}
	data, err := io.ReadAll(io.LimitReader(f, agent.MaxFile+1)) // it may grow meanwhile
	if err != nil {
		return "", true, explain(ReadTool, path, err)
	}
	switch err := c.AddFile(ctx, agent.FileInput{Name: place, Data: data}); {
	case errors.Is(err, agent.CodeNotSetUp):
		return "", true, refuse(ReadTool, "%s is a binary file of %s", shown(path), size(bytes))
	case err != nil:
		return "", true, fmt.Errorf("%s can't be shown: %w", shown(path), err)
	}
	return fmt.Sprintf("[%s: %s, %s]", place, kind, size(int64(len(data)))), true, nil
}
