package play

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
)

// ErrHangs means that a function did not come to wait for a step in time: it may loop, or wait
// for a channel, a lock, or the network.
var ErrHangs = errors.New("the flow's function does not return")

// hang is a strand that did not come to wait in time. Nothing can end its goroutine.
type hang struct {
	strand *strand
	back   chan struct{} // closed when the strand waits or has ended after all
}

func newHang(s *strand) *hang {
	h := &hang{strand: s, back: make(chan struct{})}
	go func() {
		select {
		case <-s.back:
		case <-s.gone: // the play was given up
		}
		close(h.back)
	}()
	return h
}

// Hangs returns a channel that is closed when the function waits or has ended after all; nil if
// it does not hang.
func (p *Play) Hangs() <-chan struct{} {
	if p.hung == nil {
		return nil
	}
	return p.hung.back
}

// Delivered returns how many results the function got.
func (p *Play) Delivered() int { return int(p.delivered.Load()) }

// awaitHung waits for a strand that hangs; the error is that of [Play.Run].
func (p *Play) awaitHung(ctx context.Context) error {
	if p.hung == nil {
		return nil
	}
	if err := p.await(ctx, p.hung.strand, p.hung.back); err != nil {
		return err
	}
	p.hung = nil
	p.checkMisuse()
	return nil
}

// hangs returns the error of a strand that does not come to wait.
func (s *strand) hangs() error { return fmt.Errorf("%w:\n%s", ErrHangs, stackOf(s.goroutine())) }

// goroutine returns the number of the strand's goroutine; empty before it runs.
func (s *strand) goroutine() string {
	if id := s.id.Load(); id != nil {
		return *id
	}
	return ""
}

// goroutineID returns the number of this goroutine, by which stackOf finds it.
func goroutineID() string {
	buf := make([]byte, 64)
	f := strings.Fields(string(buf[:runtime.Stack(buf, false)]))
	return f[1]
}

// stackOf returns the stack of a goroutine.
func stackOf(id string) string {
	buf := make([]byte, 1<<20)
	n := runtime.Stack(buf, true)
	for n == len(buf) && n < maxStacks { // a large process has many
		buf = make([]byte, 4*n)
		n = runtime.Stack(buf, true)
	}
	for _, one := range strings.Split(string(buf[:n]), "\n\n") {
		if strings.HasPrefix(one, "goroutine "+id+" ") {
			return firstFrames([]byte(one))
		}
	}
	return ""
}

// maxStacks bounds the stacks of all goroutines that are looked through, in bytes.
const maxStacks = 64 << 20

// maxStack bounds how much of a stack goes into an error, in bytes.
const maxStack = 2 << 10

// firstFrames returns the beginning of a stack, without the runtime's own frames.
func firstFrames(stack []byte) string {
	lines := strings.Split(string(stack), "\n")
	kept := lines[:1]
	for i := 1; i+1 < len(lines); i += 2 {
		if f := lines[i]; strings.HasPrefix(f, "runtime") || strings.HasPrefix(f, "panic(") || strings.Contains(f, "/internal/play.") {
			continue
		}
		kept = append(kept, lines[i], lines[i+1])
	}
	text := strings.Join(kept, "\n")
	return text[:min(len(text), maxStack)]
}
