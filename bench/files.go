package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"sync"
)

var filesBench = benchmark{
	name: "files", about: "a session that was shown 100 images of 1 MB: time, history and memory of a turn, beside the same without; what adapters do with 11",
	example: "-only '^session'", reps: 3, run: withFiles,
}

// Measures of a session with files.
const (
	filesHeap = "worker's heap after the run"
	filesRSS  = "worker's memory after the run"
	filesPeak = "worker's memory at its most"
)

// The sides of this benchmark. Both are ours.
const (
	withImages    = "with images"
	withoutImages = "without"
)

func withFiles(ctx context.Context, b *bench) error {
	return errors.Join(sessionsWithFiles(ctx, b), requestsWithFiles(ctx, b))
}

func sessionsWithFiles(ctx context.Context, b *bench) error {
	images := pick(b, 100, 15)
	cell := fmt.Sprintf("session, %d images of 1 MB", images)
	if !b.wants(cell) {
		return nil
	}
	s, err := newBenchEnv(ctx, b, nil)
	if err != nil {
		return err
	}
	defer s.close()
	p := plan{Turns: pick(b, 50, 10), Size: 1 << 10}
	var sides []side
	for _, name := range []string{withImages, withoutImages} {
		before := plan{Turns: images, Size: p.Size, Shows: name == withImages}
		sides = append(sides, side{name, func(ctx context.Context, _ int) (sample, error) { return s.files(ctx, before, p) }})
	}
	t, err := s.inTurns(ctx, cell, sides...)
	if err != nil {
		return err
	}
	for _, one := range []struct {
		what, unit string
		bar        *target
	}{
		{aTurn, "ms", nil}, {workerCPU, "ms", nil}, {costEvents, "", atMost(1)}, {costBytes, "bytes", atMost(1.05)},
		{filesHeap, "bytes", nil}, {filesRSS, "bytes", nil}, {filesPeak, "bytes", nil},
	} {
		s.add(row{Cell: cell, What: one.what, Unit: one.unit, Ours: t.of(withImages, one.what), Beside: t.of(withoutImages, one.what), Reference: withoutImages, Target: one.bar})
	}
	return nil
}

// files plays a run that fills a session, and measures the next run of that session. The worker
// process is a new one, so it holds nothing of other sessions.
func (s *benchEnv) files(ctx context.Context, before, p plan) (sample, error) {
	j := s.job(sideFermata)
	c, err := startWorkers(ctx, j, 1)
	if err != nil {
		return nil, err
	}
	defer c.shutDown()
	l, err := newFermataRunner(s.temporal, j)
	if err != nil {
		return nil, err
	}
	id := name("files")
	if err := play(ctx, l, id, before); err != nil {
		return nil, err
	}
	c.forget()
	m, err := clocked(ctx, c, p.Turns, func() (sample, error) {
		if err := l.again(ctx, id, p); err != nil {
			return nil, err
		}
		calls, err := c.calledBy(ctx, id, p.asks())
		return sample{aTurn: ms(calls.last.Sub(calls.first)) / float64(p.Turns)}, err
	})
	if err != nil {
		return nil, err
	}
	held, err := c.holds(ctx)
	if err != nil {
		return nil, err
	}
	m[filesHeap], m[filesRSS], m[filesPeak] = float64(held.Heap), float64(held.RSS), float64(held.Peak)
	events, err := eventsOf(ctx, s.temporal, id)
	if err != nil {
		return nil, err
	}
	m[costEvents], m[costBytes], err = lastTen(events, p.Turns)
	return m, err
}

// again plays a plan as the next run of a session.
func (l *fermataRunner) again(ctx context.Context, id string, p plan) error {
	task, err := json.Marshal(p)
	if err != nil {
		return err
	}
	run, err := l.client.Send(ctx, id, string(task), nil)
	if err != nil {
		return err
	}
	o, err := run.Result(ctx)
	if err != nil {
		return err
	}
	return o.Err()
}

// noise is an image of a megabyte that does not compress.
var noise = sync.OnceValue(func() []byte {
	m := image.NewGray(image.Rect(0, 0, 1024, 1024))
	for i := range m.Pix {
		m.Pix[i] = letters[i]<<1 ^ letters[len(letters)-1-i]
	}
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.NoCompression}
	if err := encoder.Encode(&out, m); err != nil {
		panic(err)
	}
	return out.Bytes()
})

// chart returns an image of a megabyte, a different one for each n.
func chart(n int) []byte { return binary.BigEndian.AppendUint64(bytes.Clone(noise()), uint64(n)) }
