package picture

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
)

// Limits of images, whatever a model takes.
const (
	// maxPixels is the most pixels of an image, and maxSide its longest side.
	maxPixels = 50_000_000
	maxSide   = 65_535
	// copySide is the longest side of a copy. Models see an image of about this size.
	copySide = 2000
	// maxPNG is the most bytes of a copy as PNG if the model takes JPEG, too.
	maxPNG = 1 << 20
)

// Bounds are what a model takes.
type Bounds struct {
	// Files are the most bytes of a file, by media type.
	Files map[string]int
	// Side is the longest side of an image in pixels; zero for any.
	Side int
}

// Take reports whether images of a type are within the bounds, or copies of them can be.
func (b Bounds) Take(mediaType string) bool {
	_, takes := b.Files[mediaType]
	_, known := formats[mediaType]
	return takes || known && b.takeCopies()
}

func (b Bounds) takeCopies() bool {
	_, png := b.Files["image/png"]
	_, jpeg := b.Files["image/jpeg"]
	return png || jpeg
}

// Image is an encoded image.
type Image struct {
	Data      []byte
	MediaType string
}

// Unfit says why a model can't get an image, in words for the model.
type Unfit string

func (u Unfit) Error() string { return string(u) }

const (
	wrongType Unfit = "you can't read files of this type"
	tooLarge  Unfit = "it is too large for you to read"
	broken    Unfit = "its bytes can't be decoded"
)

// look reads an image's header. memory is zero if the image is within the bounds as it is, and
// otherwise the most bytes that a copy takes to make. Errors are an [Unfit].
func look(in Image, b Bounds) (memory int64, err error) {
	most, takes := b.Files[in.MediaType]
	f, known := formats[in.MediaType]
	switch {
	case !b.Take(in.MediaType):
		return 0, wrongType
	case !known && len(in.Data) > most:
		return 0, tooLarge
	case !known: // its pixels can't be counted
		return 0, nil
	}
	c, err := f.config(bytes.NewReader(in.Data))
	longest, pixels := max(c.Width, c.Height), int64(c.Width)*int64(c.Height)
	switch {
	case err != nil, pixels < 1:
		return 0, broken
	case longest > maxSide, pixels > maxPixels:
		return 0, Unfit(fmt.Sprintf("its %d by %d pixels are too many", c.Width, c.Height))
	case takes && len(in.Data) <= most && (b.Side == 0 || longest <= b.Side):
		return 0, nil
	case !b.takeCopies():
		return 0, tooLarge
	}
	if memory, err = f.memory(in.Data, pixels); err != nil {
		return 0, broken
	}
	// Besides, up to a byte a pixel for the mean of shrink, and the copy itself, several times.
	if memory += pixels + 64<<20; memory > maxMemory {
		return 0, tooLarge
	}
	return memory, nil
}

// copyOf decodes an image and returns a copy within bounds. The same image and bounds give the same
// copy, which the cache of a provider depends on. Errors are an [Unfit] and the context's.
func copyOf(ctx context.Context, in Image, b Bounds) (out Image, err error) {
	defer func() { // a decoder's panic would repeat with every attempt, and end the conversation
		if recover() != nil {
			out, err = Image{}, broken
		}
	}()
	whole, err := formats[in.MediaType].decode(reader{ctx, bytes.NewReader(in.Data)})
	if ctx.Err() != nil {
		return Image{}, ctx.Err()
	}
	if err != nil {
		return Image{}, broken
	}
	m := turn(shrink(whole, min(copySide, cmp.Or(b.Side, copySide))), orientation(in))
	for ctx.Err() == nil {
		if out, ok := encode(m, in.MediaType == "image/jpeg", b.Files); ok {
			return out, nil
		}
		side := max(m.Rect.Dx(), m.Rect.Dy()) * 3 / 4
		if side == 0 {
			return Image{}, tooLarge
		}
		m = shrink(m, side)
	}
	return Image{}, ctx.Err()
}
