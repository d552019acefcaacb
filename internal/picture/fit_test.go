package picture

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/image/bmp"
)

// claude are the bounds of a model with all of them.
var claude = Bounds{Files: map[string]int{"image/png": 3932160, "image/jpeg": 3932160, "image/gif": 3932160, "image/webp": 3932160}, Side: 8000}

// encoded returns an image of a type.
func encoded(t testing.TB, mediaType string, m image.Image) Image {
	t.Helper()
	var out bytes.Buffer
	switch mediaType {
	case "image/png":
		require.NoError(t, png.Encode(&out, m))
	case "image/jpeg":
		require.NoError(t, jpeg.Encode(&out, m, &jpeg.Options{Quality: 100}))
	case "image/gif":
		require.NoError(t, gif.Encode(&out, m, nil))
	case "image/bmp":
		require.NoError(t, bmp.Encode(&out, m))
	}
	return Image{out.Bytes(), mediaType}
}

// flat is an image of one color that costs no memory.
type flat struct {
	*image.Uniform
	size image.Rectangle
}

func (f flat) Bounds() image.Rectangle { return f.size }

func red(w, h int) image.Image {
	return flat{image.NewUniform(color.RGBA{200, 0, 0, 255}), image.Rect(0, 0, w, h)}
}

func noise(w, h int) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	r := rand.NewChaCha8([32]byte{})
	r.Read(m.Pix)
	for i := 3; i < len(m.Pix); i += 4 {
		m.Pix[i] = 255
	}
	return m
}

// webpOf is an image of one pixel.
func webpOf(t testing.TB) Image {
	data, err := base64.StdEncoding.DecodeString("UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==")
	require.NoError(t, err)
	return Image{data, "image/webp"}
}

// claims returns a PNG that says its size and has no pixels.
func claims(w, h uint32, depth, interlaced byte) Image {
	chunk := binary.BigEndian.AppendUint32([]byte("IHDR"), w)
	chunk = append(binary.BigEndian.AppendUint32(chunk, h), depth, 6, 0, 0, interlaced)
	data := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), chunk...)
	return Image{binary.BigEndian.AppendUint32(data, crc32.ChecksumIEEE(chunk)), "image/png"}
}

// with returns a PNG with one more chunk: data that is packed.
func with(in Image, kind string, data []byte) Image {
	var packed bytes.Buffer
	packed.WriteString(kind)
	z := zlib.NewWriter(&packed)
	_, _ = z.Write(data) // a buffer takes everything
	_ = z.Close()
	out := binary.BigEndian.AppendUint32(slices.Clone(in.Data), uint32(packed.Len()-4))
	return Image{binary.BigEndian.AppendUint32(append(out, packed.Bytes()...), crc32.ChecksumIEEE(packed.Bytes())), in.MediaType}
}

// What is within the bounds stays as it is; of others, a copy within the bounds is made.
func TestFit(t *testing.T) {
	onlyPNG := Bounds{Files: map[string]int{"image/png": 20_000}}
	noGIF := Bounds{Files: map[string]int{"image/png": 1 << 20, "image/jpeg": 1 << 20}}
	for name, c := range map[string]struct {
		in   Image
		b    Bounds
		want string // the type of a copy; empty for the same bytes
		w, h int
	}{
		"as it is":                 {encoded(t, "image/png", red(8000, 10)), claude, "", 8000, 10},
		"a type without a decoder": {Image{[]byte("x"), "image/heic"}, Bounds{Files: map[string]int{"image/heic": 1}}, "", 0, 0},
		"too long":                 {encoded(t, "image/png", red(8001, 400)), claude, "image/png", 2000, 99},
		"too long and thin":        {encoded(t, "image/png", red(1, 8001)), claude, "image/png", 1, 2000},
		"a smaller bound":          {encoded(t, "image/png", red(300, 200)), Bounds{noGIF.Files, 150}, "image/png", 150, 100},
		"too many bytes":           {encoded(t, "image/jpeg", noise(500, 400)), Bounds{Files: map[string]int{"image/png": 1 << 20, "image/jpeg": 200_000}}, "image/jpeg", 500, 400},
		"still too many bytes":     {encoded(t, "image/jpeg", noise(500, 400)), Bounds{Files: map[string]int{"image/jpeg": 100_000}}, "image/jpeg", 375, 300},
		"a large PNG":              {encoded(t, "image/png", noise(900, 600)), Bounds{noGIF.Files, 800}, "image/jpeg", 800, 533},
		"PNG alone, of few bytes":  {encoded(t, "image/png", noise(500, 500)), onlyPNG, "image/png", 87, 87},
		"GIF":                      {encoded(t, "image/gif", red(30, 20)), noGIF, "image/png", 30, 20},
		"BMP":                      {encoded(t, "image/bmp", red(30, 20)), claude, "image/png", 30, 20},
		"WebP":                     {webpOf(t), noGIF, "image/png", 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := new(Cache).Fit(t.Context(), "", c.in, c.b)
			require.NoError(t, err)
			if c.want == "" {
				require.Equal(t, c.in, got)
				return
			}
			require.Equal(t, c.want, got.MediaType)
			require.LessOrEqual(t, len(got.Data), c.b.Files[c.want])
			size, kind, err := image.DecodeConfig(bytes.NewReader(got.Data))
			require.NoError(t, err)
			require.Equal(t, c.want, "image/"+kind)
			require.Equal(t, []int{c.w, c.h}, []int{size.Width, size.Height})
		})
	}
}

// What claims more than it may cost is refused before it costs anything.
func TestUnfit(t *testing.T) {
	small := Bounds{Files: map[string]int{"image/png": 10}}
	huge := webpOf(t).Data
	for name, c := range map[string]struct {
		in   Image
		b    Bounds
		want string
	}{
		"100,000 by 100,000 pixels":   {claims(100_000, 100_000, 8, 0), claude, "its 100000 by 100000 pixels are too many"},
		"a long line":                 {claims(70_000, 1, 8, 0), claude, "its 70000 by 1 pixels are too many"},
		"the most that a PNG says":    {claims(1<<31-1, 1<<31-1, 8, 0), claude, "bytes can't be decoded"},
		"a GIF of 34 bytes":           {Image{[]byte("GIF89a\xff\xff\xff\xff\xf0\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\xff\xff\xff\xff@\x02\x01\x14\x00;"), "image/gif"}, claude, "its 65535 by 65535 pixels are too many"},
		"a WebP of some bytes":        {Image{slices.Concat(huge[:21], []byte("\xff\xff\xff\x0f"), huge[25:]), "image/webp"}, claude, "its 16384 by 16384 pixels are too many"},
		"16 bits a color, interlaced": {claims(8001, 6000, 16, 1), claude, "it is too large for you to read"},
		"pixels that never end":       {with(claims(8001, 2, 8, 0), "IDAT", make([]byte, 16<<20)), claude, "its bytes can't be decoded"},
		"a text that unpacks large":   {with(claims(8001, 2, 8, 0), "zTXt", make([]byte, 16<<20)), claude, "its bytes can't be decoded"},
		"no pixels":                   {claims(9000, 10, 8, 0), claude, "its bytes can't be decoded"},
		"no size":                     {claims(0, 10, 8, 0), claude, "its bytes can't be decoded"},
		"nothing":                     {Image{nil, "image/png"}, claude, "its bytes can't be decoded"},
		"of another type":             {Image{webpOf(t).Data, "image/jpeg"}, claude, "its bytes can't be decoded"},
		"cut off":                     {Image{encoded(t, "image/png", red(9000, 100)).Data[:200], "image/png"}, claude, "its bytes can't be decoded"},
		"no model reads it":           {Image{[]byte("II*\x00"), "image/tiff"}, claude, "you can't read files of this type"},
		"no copy is small enough":     {encoded(t, "image/png", red(9, 9)), small, "it is too large for you to read"},
		"no images at all":            {webpOf(t), Bounds{}, "you can't read files of this type"},
		"no copies":                   {webpOf(t), Bounds{Files: map[string]int{"image/webp": 1}}, "it is too large for you to read"},
		"a type without a decoder":    {Image{[]byte("xy"), "image/heic"}, Bounds{Files: map[string]int{"image/heic": 1}}, "it is too large for you to read"},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := new(Cache).Fit(t.Context(), "", c.in, c.b)
			runtime.ReadMemStats(&after)
			require.ErrorContains(t, err, c.want)
			require.ErrorAs(t, err, new(Unfit))
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8<<20))
		})
	}
}

// What a JPEG costs is in its segments: whatever comes after its end costs nothing, as the film of
// a motion photo.
func TestCostOfJPEG(t *testing.T) {
	one := encoded(t, "image/jpeg", red(16, 16)).Data
	cost := func(data []byte) int64 {
		memory, err := memoryOfJPEG(data, 1)
		if err != nil {
			return 0
		}
		return memory
	}
	require.EqualValues(t, 8, cost(one))
	sof, sos := bytes.Index(one, []byte{0xff, 0xc0}), bytes.Index(one, []byte{0xff, 0xda})
	progressive := slices.Concat(one[:sof], []byte{0xff, 0xc2}, one[sof+2:])
	require.EqualValues(t, 20, cost(progressive))
	scan := one[sos : len(one)-2]
	require.EqualValues(t, 8, cost(slices.Concat(one, []byte("\x00\x02"), bytes.Repeat(scan, maxScans+1))))
	require.EqualValues(t, 8, cost(slices.Concat(one[:sos], bytes.Repeat(scan, maxScans))))
	require.Zero(t, cost(slices.Concat(one[:sos], bytes.Repeat(scan, maxScans+1))))
	hidden := slices.Concat(scan, []byte("\xff\xfe\x00\x04\xff\xd9junk\xff\x00\xff\xd0")) // an end within a comment is none
	require.Zero(t, cost(slices.Concat(one[:sos], bytes.Repeat(hidden, maxScans+1))))
}

// A decoder's panic is one image that can't be decoded. The end of a call's context is no property
// of the image.
func TestDecoderFails(t *testing.T) {
	var c Cache
	in := Image{encoded(t, "image/png", red(9, 9)).Data, "image/test"}
	ctx, end := context.WithCancel(t.Context())
	decode := func(f func(io.Reader) (image.Image, error)) {
		formats[in.MediaType] = format{png.DecodeConfig, f, memoryOfPNG}
	}
	defer delete(formats, in.MediaType)
	decode(func(io.Reader) (image.Image, error) { panic("index out of range") })
	_, err := c.Fit(ctx, "a", in, claude)
	require.Equal(t, broken, err)
	decode(func(io.Reader) (image.Image, error) { end(); return nil, io.ErrUnexpectedEOF })
	_, err = c.Fit(ctx, "b", in, claude)
	require.ErrorIs(t, err, context.Canceled)
	decode(png.Decode)
	_, err = c.Fit(t.Context(), "b", in, claude)
	require.NoError(t, err)
	_, err = c.Fit(t.Context(), "a", in, claude)
	require.Equal(t, broken, err, "it is not decoded again")
}

// A GIF's first frame is what counts, however many come after it.
func TestOneFrame(t *testing.T) {
	var out bytes.Buffer
	whole := &gif.GIF{}
	for range 2000 {
		whole.Image, whole.Delay = append(whole.Image, image.NewPaletted(image.Rect(0, 0, 100, 100), color.Palette{color.Black, color.White})), append(whole.Delay, 1)
	}
	require.NoError(t, gif.EncodeAll(&out, whole))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := new(Cache).Fit(t.Context(), "", Image{out.Bytes(), "image/gif"}, Bounds{Files: map[string]int{"image/png": 1 << 20}})
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Equal(t, "image/png", got.MediaType)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4<<20))
}

// A copy is upright, since it has no EXIF that would turn it.
func TestOrientation(t *testing.T) {
	corners := []color.RGBA{{255, 0, 0, 255}, {0, 255, 0, 255}, {0, 0, 255, 255}, {255, 255, 255, 255}}
	// Which corners of the upright image an image has at its top and bottom, by EXIF's definition: with
	// 6, its first row is the right side, and its first column the top.
	for i, stored := range []string{"0123", "1032", "3210", "2301", "0213", "1302", "3120", "2031"} {
		o := i + 1
		t.Run(strconv.Itoa(o), func(t *testing.T) {
			w, h := 64, 32
			if o >= 5 {
				w, h = h, w
			}
			m := image.NewRGBA(image.Rect(0, 0, w, h))
			for y := range h {
				for x := range w {
					m.SetRGBA(x, y, corners[stored[2*y/h*2+2*x/w]-'0'])
				}
			}
			in := encoded(t, "image/jpeg", m)
			exif := append([]byte("\xff\xe1\x00\x22Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00"), byte(o), 0, 0, 0, 0, 0, 0)
			in.Data = slices.Insert(in.Data, 2, exif...)
			got, err := new(Cache).Fit(t.Context(), "", in, Bounds{Files: claude.Files, Side: 48})
			require.NoError(t, err)
			out, err := jpeg.Decode(bytes.NewReader(got.Data))
			require.NoError(t, err)
			require.Equal(t, image.Rect(0, 0, 48, 24), out.Bounds())
			for i, want := range corners {
				r, g, b, _ := out.At(6+36*(i%2), 4+16*(i/2)).RGBA()
				require.InDelta(t, want.R, r>>8, 8, "corner %d", i)
				require.InDelta(t, want.G, g>>8, 8, "corner %d", i)
				require.InDelta(t, want.B, b>>8, 8, "corner %d", i)
			}
		})
	}
}

// What is transparent stays so in a PNG, and is white in a JPEG.
func TestTransparent(t *testing.T) {
	m := noise(200, 200)
	for i := 3; i < len(m.Pix); i += 4 {
		m.Pix[i] = 0
	}
	in := encoded(t, "image/png", m)
	for kind, alpha := range map[string]uint32{"image/png": 0, "image/jpeg": 0xffff} {
		got, err := new(Cache).Fit(t.Context(), "", in, Bounds{map[string]int{kind: 1 << 20}, 100})
		require.NoError(t, err)
		out, _, err := image.Decode(bytes.NewReader(got.Data))
		require.NoError(t, err)
		r, _, _, a := out.At(50, 50).RGBA()
		require.Equal(t, []uint32{alpha, alpha}, []uint32{r, a})
	}
}

// A copy is made once, and another process makes the same.
func TestCache(t *testing.T) {
	var c Cache
	in := encoded(t, "image/png", noise(300, 300))
	b := Bounds{claude.Files, 200}
	first, err := c.Fit(t.Context(), "a", in, b)
	require.NoError(t, err)
	again, err := c.Fit(t.Context(), "a", in, b)
	require.NoError(t, err)
	require.Same(t, &first.Data[0], &again.Data[0])
	elsewhere, err := new(Cache).Fit(t.Context(), "a", in, b)
	require.NoError(t, err)
	require.NotSame(t, &first.Data[0], &elsewhere.Data[0])
	require.Equal(t, first, elsewhere)
	other, err := c.Fit(t.Context(), "a", in, Bounds{claude.Files, 100})
	require.NoError(t, err)
	require.NotEqual(t, first, other)

	for i := range 40 {
		c.add(key{side: i}, made{copy: Image{Data: make([]byte, 3<<20)}})
		require.LessOrEqual(t, c.size, maxKept)
	}
	require.Equal(t, 21, c.kept.Len())
}

// FuzzFit: whatever the bytes are, the result is within the bounds or says why there is none, and
// takes the memory that was counted before.
func FuzzFit(f *testing.F) {
	types := []string{"image/png", "image/jpeg", "image/gif", "image/bmp", "image/webp"}
	for i, kind := range types[:4] {
		f.Add(encoded(f, kind, noise(40, 30)).Data, byte(i), uint16(20), uint16(2000))
	}
	f.Add(webpOf(f).Data, byte(4), uint16(0), uint16(0))
	f.Add(claims(100_000, 100_000, 8, 0).Data, byte(0), uint16(0), uint16(2000))
	f.Add(claims(5000, 5000, 16, 1).Data, byte(0), uint16(20), uint16(2000))
	f.Fuzz(func(t *testing.T, data []byte, kind byte, side, most uint16) {
		in := Image{data, types[int(kind)%len(types)]}
		b := Bounds{map[string]int{"image/png": int(most), "image/jpeg": int(most)}, int(side)}
		memory, _ := look(in, b)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		out, err := new(Cache).Fit(t.Context(), "", in, b)
		runtime.ReadMemStats(&after)
		require.LessOrEqual(t, int64(after.TotalAlloc-before.TotalAlloc), memory+1<<20)
		if err != nil {
			require.ErrorAs(t, err, new(Unfit))
			return
		}
		require.LessOrEqual(t, len(out.Data), int(most))
		c, _, err := image.DecodeConfig(bytes.NewReader(out.Data))
		require.NoError(t, err)
		require.True(t, side == 0 || max(c.Width, c.Height) <= int(side))
	})
}
