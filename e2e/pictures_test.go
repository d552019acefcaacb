package e2e

import (
	"bytes"
	"image"
	"image/png"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/testsuite"
)

// bitmap is a BMP of one red pixel, which no provider takes.
const bitmap = "BM\x3a\x00\x00\x00\x00\x00\x00\x00\x36\x00\x00\x00\x28\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x01\x00\x18\x00\x00\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\x00"

// An image that the model does not take reaches it as a copy; the transcript keeps the original. An
// image that claims too much is said in words.
func TestImagesFitTheModel(t *testing.T) {
	t.Parallel()
	script := testsuite.NewScript(testsuite.Reply{Text: "Red."}, testsuite.Reply{Text: "Still red."})
	s := setup(t, agent.Definition{}, script)
	bomb := "GIF89a\xff\xff\xff\xff\x00\x00\x00"
	s.run(t, "What are these?", &client.StartOptions{Session: "pictures", Files: []client.FileInput{
		{Name: "red.bmp", Data: []byte(bitmap)}, {Name: "bomb.gif", Data: []byte(bomb)},
	}})
	next, err := s.Send(t.Context(), "pictures", "And now?", nil)
	require.NoError(t, err)
	_, err = next.Result(t.Context())
	require.NoError(t, err)

	asked := script.Requests()
	require.Len(t, asked, 2)
	require.Equal(t, asked[0].Files, asked[1].Files, "the same bytes in every turn")
	message := asked[0].Messages[0]
	require.Contains(t, message.Text(), "[bomb.gif#dd871b0e (image/gif, 13 bytes): its 65535 by 65535 pixels are too many]")
	require.Len(t, message.Files(), 1)
	shown := message.Files()[0]
	require.Equal(t, "image/png", shown.MediaType)
	m, err := png.Decode(bytes.NewReader(asked[0].Files[shown.Digest]))
	require.NoError(t, err)
	require.Equal(t, image.Rect(0, 0, 1, 1), m.Bounds())
	r, g, _, _ := m.At(0, 0).RGBA()
	require.Equal(t, []uint32{0xffff, 0}, []uint32{r, g})

	messages, err := s.Transcript(t.Context(), "pictures")
	require.NoError(t, err)
	kept := messages[0].Files()
	require.Equal(t, "image/bmp", kept[0].MediaType)
	data, err := s.File(t.Context(), kept[0])
	require.NoError(t, err)
	require.Equal(t, bitmap, string(data))
}

// A PDF with more pages than a window takes does not end the conversation either.
func TestAFileThatIsTooLongForTheModel(t *testing.T) {
	t.Parallel()
	tooLong := testsuite.Failure{Kind: agent.FaultContext, Message: "prompt is too long", HTTP: 400}
	script := testsuite.NewScript(testsuite.Reply{Match: "you could not read it", Text: "I can't read it."}, testsuite.Reply{Text: "never", Fail: slices.Repeat([]testsuite.Failure{tooLong}, 20)})
	s := setup(t, agent.Definition{}, script)
	_, out := s.run(t, "Sum it up.", &client.StartOptions{Files: []client.FileInput{{Name: "long.pdf", Data: []byte("%PDF-1.4 of 10,000 pages")}}})
	require.Equal(t, "I can't read it.", out.Text, "%v", out.Err())
	asked := script.Requests()
	require.Contains(t, asked[len(asked)-1].Messages[0].Text(), "Sum it up.")
}
