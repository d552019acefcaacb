package picture

import (
	"image"

	"golang.org/x/image/draw"
)

// shrink returns an image with sides of at most side pixels, in the same proportions. A much larger
// image becomes a mean of its pixels first: the scaler looks at four pixels for one. Those that
// look at more take 32 bytes of memory for each pixel of a stripe.
func shrink(m image.Image, side int) *image.RGBA {
	if k := max(m.Bounds().Dx(), m.Bounds().Dy()) / side; k > 1 {
		m = mean(m, k)
	}
	b := m.Bounds()
	longest := max(b.Dx(), b.Dy())
	if rgba, ok := m.(*image.RGBA); ok && longest <= side {
		return rgba
	}
	to := image.Rect(0, 0, b.Dx(), b.Dy())
	if longest > side {
		to.Max = image.Pt(max(1, b.Dx()*side/longest), max(1, b.Dy()*side/longest))
	}
	out := image.NewRGBA(to)
	draw.ApproxBiLinear.Scale(out, to, m, b, draw.Src, nil)
	return out
}

// mean returns a smaller image. Each of its pixels is the mean of k by k pixels.
func mean(m image.Image, k int) *image.RGBA {
	b := m.Bounds()
	out := image.NewRGBA(image.Rect(0, 0, (b.Dx()+k-1)/k, (b.Dy()+k-1)/k))
	rows := image.NewRGBA(image.Rect(0, 0, b.Dx(), min(k, b.Dy())))
	for y := range out.Rect.Dy() {
		high := min(k, b.Dy()-y*k)
		draw.Draw(rows, image.Rect(0, 0, b.Dx(), high), m, b.Min.Add(image.Pt(0, y*k)), draw.Src)
		for x := range out.Rect.Dx() {
			var sum [4]int
			wide := min(k, b.Dx()-x*k)
			for row := range high {
				from := rows.Pix[row*rows.Stride+x*k*4:][:wide*4]
				for i, v := range from {
					sum[i%4] += int(v)
				}
			}
			for i, s := range sum {
				out.Pix[y*out.Stride+x*4+i] = byte((s + wide*high/2) / (wide * high))
			}
		}
	}
	return out
}

// turn returns an image as its EXIF orientation means it.
func turn(m *image.RGBA, orientation int) *image.RGBA {
	if orientation == 1 {
		return m
	}
	w, h := m.Rect.Dx(), m.Rect.Dy()
	out := image.NewRGBA(image.Rect(0, 0, w, h))
	if orientation >= 5 {
		out = image.NewRGBA(image.Rect(0, 0, h, w))
	}
	for y := range out.Rect.Dy() {
		for x := range out.Rect.Dx() {
			fx, fy := x, y
			if orientation >= 5 {
				fx, fy = y, x
			}
			switch orientation {
			case 2, 8:
				fx = w - 1 - fx
			case 4, 6:
				fy = h - 1 - fy
			case 3, 7:
				fx, fy = w-1-fx, h-1-fy
			}
			out.SetRGBA(x, y, m.RGBAAt(fx, fy))
		}
	}
	return out
}
