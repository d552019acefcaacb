package standin

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"slices"

	"github.com/fermata-agents/fermata/agent"
)

// picture is a black image of 4 by 3 pixels, as PNG.
const picture = "iVBORw0KGgoAAAANSUhEUgAAAAQAAAADCAAAAACRn/EaAAAAC0lEQVR4nGNgQAEAAA8AAbVWKT4AAAAASUVORK5CYII="

// Picture returns a small image, as PNG.
func Picture() []byte {
	data, err := base64.StdEncoding.DecodeString(picture)
	if err != nil {
		panic(err)
	}
	return data
}

// Shown returns a part with a file, and adds its bytes to files.
func Shown(files map[string][]byte, name, mediaType string, data []byte) agent.Part {
	sum := sha256.Sum256(data)
	f := &agent.File{Session: "s", Digest: hex.EncodeToString(sum[:]), Size: len(data), MediaType: mediaType, Name: name}
	files[f.Digest] = data
	return agent.Part{Type: agent.PartFile, File: f}
}

// ResultFiles returns a conversation in which a tool has shown both: within its result, and
// after it for a model that takes no files there.
func ResultFiles() (within, after []agent.Message, files map[string][]byte) {
	files = map[string][]byte{}
	shown := []agent.Part{Shown(files, "chart.png", "image/png", Picture()), Shown(files, "report.pdf", "application/pdf", []byte("%PDF-1.4 a report"))}
	result := Result("t1.1", "plot", agent.CallOK, "drawn")
	asked := []agent.Message{agent.TextMessage(agent.RoleUser, "Plot it."), Assistant("other/model", Called("t1.1", "plot", "{}"))}
	after = append(slices.Clone(asked), agent.Message{Role: agent.RoleTool, Parts: append([]agent.Part{result, Said("[file 1, from a call of plot]")}, shown...)})
	whole := Result("t1.1", "plot", agent.CallOK, "drawn")
	whole.Result.Files = shown
	return append(asked, agent.Message{Role: agent.RoleTool, Parts: []agent.Part{whole}}), after, files
}

// Files returns a conversation in which the user has shown an image and a PDF, with the bytes
// of both.
func Files() ([]agent.Message, map[string][]byte) {
	files := map[string][]byte{}
	chart, report := Shown(files, "chart.png", "image/png", Picture()), Shown(files, "report.pdf", "application/pdf", []byte("%PDF-1.4 a report"))
	return []agent.Message{
		{Role: agent.RoleUser, Parts: []agent.Part{Said("Do these two agree?"), chart, report}},
		Assistant("other/model", Said("They do.")),
		{Role: agent.RoleUser, Parts: []agent.Part{chart}},
		agent.TextMessage(agent.RoleUser, "And what is this?"),
	}, files
}
