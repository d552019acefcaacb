package picture

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"

	"golang.org/x/image/draw"
)

// encode returns an image as a type that a model takes, within its bytes. A photo becomes a JPEG;
// others become a PNG unless that is large, since a JPEG blurs text and has no transparency.
func encode(m *image.RGBA, photo bool, files map[string]int) (Image, bool) {
	mostPNG, takesPNG := files["image/png"]
	mostJPEG, takesJPEG := files["image/jpeg"]
	if takesJPEG {
		mostPNG = min(mostPNG, maxPNG)
	}
	var out bytes.Buffer
	if takesPNG && !(photo && takesJPEG) && png.Encode(&out, m) == nil && out.Len() <= mostPNG {
		return Image{out.Bytes(), "image/png"}, true
	}
	out.Reset()
	if !takesJPEG || jpeg.Encode(&out, opaque(m), &jpeg.Options{Quality: 85}) != nil {
		return Image{}, false
	}
	return Image{out.Bytes(), "image/jpeg"}, out.Len() <= mostJPEG
}

// opaque returns an image on white.
func opaque(m *image.RGBA) *image.RGBA {
	if m.Opaque() {
		return m
	}
	out := image.NewRGBA(m.Rect)
	draw.Draw(out, out.Rect, image.NewUniform(color.White), image.Point{}, draw.Src)
	draw.Draw(out, out.Rect, m, image.Point{}, draw.Over)
	return out
}
