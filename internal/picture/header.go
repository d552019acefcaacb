package picture

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"iter"

	"golang.org/x/image/bmp"
	"golang.org/x/image/webp"
)

// format is a format that can be decoded.
type format struct {
	config func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error)
	// memory returns the most bytes that decoding needs.
	memory func(data []byte, pixels int64) (int64, error)
}

// formats are by media type. Of a GIF, only the first frame is decoded. TIFF is left out: few
// send it, and its decoder was unsafe more often than the others.
var formats = map[string]format{
	"image/png":  {png.DecodeConfig, png.Decode, memoryOfPNG},
	"image/jpeg": {jpeg.DecodeConfig, jpeg.Decode, memoryOfJPEG},
	"image/gif":  {gif.DecodeConfig, gif.Decode, func(_ []byte, pixels int64) (int64, error) { return 2 * pixels, nil }},
	"image/bmp":  {bmp.DecodeConfig, bmp.Decode, func(_ []byte, pixels int64) (int64, error) { return 4 * pixels, nil }},
	"image/webp": {webp.DecodeConfig, webp.Decode, memoryOfWebP},
}

var errBroken = errors.New("broken image")

// memoryOfPNG counts an interlaced image twice: its passes are images, too.
func memoryOfPNG(data []byte, pixels int64) (int64, error) {
	const depth, interlaced = 24, 28
	if len(data) <= interlaced || string(data[12:16]) != "IHDR" {
		return 0, errBroken
	}
	memory := 4 * pixels
	if data[depth] == 16 {
		memory *= 2
	}
	if data[interlaced] != 0 {
		memory *= 2
	}
	return memory, nil
}

// memoryOfWebP counts a lossless image and its last transform, or lossless alpha beside a frame of
// VP8. The decoder's trees have up to 135 MB.
func memoryOfWebP(_ []byte, pixels int64) (int64, error) { return 11*pixels + 136<<20, nil }

// maxScans is how many scans a JPEG may have. Progressive ones have about ten. Each may take as much
// time as the whole image, and very few bytes.
const maxScans = 64

// memoryOfJPEG counts the pixels, which may be converted, and the coefficients of a progressive
// image.
func memoryOfJPEG(data []byte, pixels int64) (int64, error) {
	memory, scans := 8*pixels, 0
	for marker, s := range segments(data) {
		switch {
		case marker == 0xc2 && len(s) > 5:
			memory = (8 + 4*int64(s[5])) * pixels
		case marker == 0xda:
			scans++
		}
	}
	if scans > maxScans {
		return 0, errBroken
	}
	return memory, nil
}

// segments yields the segments of a JPEG, each with its marker. As the decoder does, it skips
// pixels, and whatever else is no segment.
func segments(data []byte) iter.Seq2[byte, []byte] {
	return func(yield func(byte, []byte) bool) {
		for at := 2; at+4 <= len(data); {
			marker := data[at+1]
			if data[at] != 0xff || marker == 0 || marker == 0xff || marker >= 0xd0 && marker <= 0xd7 {
				next := bytes.IndexByte(data[at+1:], 0xff)
				if next < 0 {
					return
				}
				at += 1 + next
				continue
			}
			end := at + 2 + int(binary.BigEndian.Uint16(data[at+2:]))
			if marker == 0xd9 || end > len(data) || end < at+4 || !yield(marker, data[at+4:end]) {
				return
			}
			at = end
		}
	}
}

// orientation returns how EXIF says that an image is to be turned: 1 to 8; 1 for not at all.
func orientation(in Image) int {
	if in.MediaType != "image/jpeg" {
		return 1
	}
	for marker, s := range segments(in.Data) {
		if tags, ok := bytes.CutPrefix(s, []byte("Exif\x00\x00")); ok && marker == 0xe1 {
			return exifOrientation(tags)
		}
	}
	return 1
}

func exifOrientation(tags []byte) int {
	var order binary.ByteOrder = binary.BigEndian
	if bytes.HasPrefix(tags, []byte("II")) {
		order = binary.LittleEndian
	}
	if len(tags) < 8 {
		return 1
	}
	at := int64(order.Uint32(tags[4:]))
	if at+2 > int64(len(tags)) {
		return 1
	}
	entries := tags[at+2:]
	for range order.Uint16(tags[at:]) {
		const size, tag, short = 12, 0x112, 3
		if len(entries) < size {
			return 1
		}
		if o := order.Uint16(entries[8:]); order.Uint16(entries) == tag && order.Uint16(entries[2:]) == short && o >= 1 && o <= 8 {
			return int(o)
		}
		entries = entries[size:]
	}
	return 1
}

// reader ends with its context. It has no other methods, so that decoders read in blocks.
type reader struct {
	ctx  context.Context
	from io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.from.Read(p)
}
