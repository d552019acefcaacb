package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"image"
	"image/png"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/image/bmp"

	"github.com/fermata-agents/fermata/client"
)

// shownFiles are the files of a conversation. Their bytes are noise, which is found wherever it is.
type shownFiles struct {
	photo, bitmap, report, chart client.FileInput
}

// shownTo returns the same files in every process.
func shownTo(provider string) shownFiles {
	noise := rand.NewChaCha8(sha256.Sum256([]byte(provider)))
	pixels := func() *image.RGBA {
		m := image.NewRGBA(image.Rect(0, 0, 48, 36))
		_, _ = noise.Read(m.Pix)
		for i := 3; i < len(m.Pix); i += 4 {
			m.Pix[i] = 255
		}
		return m
	}
	encoded := func(encode func(b *bytes.Buffer) error) []byte {
		var out bytes.Buffer
		if err := encode(&out); err != nil {
			panic(err)
		}
		return out.Bytes()
	}
	asPNG := func(b *bytes.Buffer) error { return png.Encode(b, pixels()) }
	text := make([]byte, 3000)
	_, _ = noise.Read(text)
	name := func(kind string) string { return fmt.Sprintf("%s-of-%s-%x", kind, provider, noise.Uint64()) }
	return shownFiles{
		photo:  client.FileInput{Name: name("photo") + ".png", Text: name("a photo"), Data: encoded(asPNG)},
		bitmap: client.FileInput{Name: name("bitmap") + ".bmp", Data: encoded(func(b *bytes.Buffer) error { return bmp.Encode(b, pixels()) })},
		report: client.FileInput{Name: name("report") + ".pdf", Data: append([]byte("%PDF-1.7\n"), text...)},
		chart:  client.FileInput{Name: name("chart") + ".png", Text: name("a chart"), Data: encoded(asPNG)},
	}
}

func (f shownFiles) all() []client.FileInput {
	return []client.FileInput{f.photo, f.bitmap, f.report, f.chart}
}

// canaries are what may be found, by where it comes from.
type canaries map[string][]byte

// addBytes adds a piece of a file, as it is and in other notations; in base64 wherever it begins.
func (c canaries) addBytes(of string, data []byte) {
	piece := data[len(data)/2:][:32]
	c[of+", bytes"], c[of+", hex"] = piece, []byte(hex.EncodeToString(piece))
	for at := range 3 {
		c[fmt.Sprintf("%s, base64 from byte %d", of, at)] = []byte(base64.StdEncoding.EncodeToString(piece[at:][:27]))
		c[fmt.Sprintf("%s, base64 of URLs from byte %d", of, at)] = []byte(base64.URLEncoding.EncodeToString(piece[at:][:27]))
	}
}

// addNames adds what names a file.
func (c canaries) addNames(f client.FileInput) {
	sum := sha256.Sum256(f.Data)
	c[f.Name+", name"], c[f.Name+", digest"], c[f.Name+", digest in hex"] = []byte(f.Name), sum[:], []byte(hex.EncodeToString(sum[:]))
	if f.Text != "" {
		c[f.Name+", text"] = []byte(f.Text)
	}
}

// in lists what is found in the files of a folder, and in their names.
func (c canaries) in(t *testing.T, dir string) (found []string) {
	t.Helper()
	for _, path := range filesIn(t, dir) {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		for of, canary := range c {
			if bytes.Contains(data, canary) || bytes.Contains([]byte(path), canary) {
				found = append(found, fmt.Sprintf("%s: %s", path, of))
			}
		}
	}
	return found
}

// filesIn lists the files of a folder, and of those below it.
func filesIn(t *testing.T, dir string) (paths []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			paths = append(paths, path)
		}
		return err
	}))
	return paths
}
