package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// house is the processes, and whoever strikes them.
type house struct {
	place
	server *room
	rooms  [workers]*room
	builds []string // the newest is the last
	report *report
	over   atomic.Bool // nothing that ends is a fault
	frozen atomic.Bool // one of the workers is
}

// room is where a process is: one after another.
type room struct {
	command, name string

	mu    sync.Mutex // held while the process is struck
	proc  *proc
	build int
	pid   atomic.Int64
}

func open(p place, builds []string, r *report) (*house, error) {
	h := &house{place: p, builds: builds, report: r, server: &room{command: serveCommand, name: "server"}}
	for i := range h.rooms {
		h.rooms[i] = &room{command: workCommand, name: fmt.Sprintf("worker-%d", i), build: i % len(builds)}
	}
	for _, m := range h.all() {
		var err error
		if m.proc, err = p.start(builds[m.build], m.command, m.name); err != nil {
			h.close()
			return nil, err
		}
		m.pid.Store(int64(m.proc.Process.Pid))
	}
	return h, nil
}

// all lists the rooms, the server's first.
func (h *house) all() []*room { return append([]*room{h.server}, h.rooms[:]...) }

// close ends all processes, the server's last.
func (h *house) close() {
	h.over.Store(true)
	for i := len(h.rooms); i >= 0; i-- {
		m := h.all()[i]
		m.mu.Lock()
		if m.proc != nil {
			_ = m.proc.Process.Signal(syscall.SIGCONT) // one that is not stopped does not mind
			m.proc.dismiss()
		}
		m.mu.Unlock()
	}
}

// strike does what is planned. It returns when the process is there again.
func (h *house) strike(ctx context.Context, s strike) {
	m := h.server
	if s.Blow != blowServer {
		m = h.rooms[s.Worker]
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	h.report.struck(s.Blow)
	if s.Blow == blowStop {
		_ = m.proc.Process.Signal(syscall.SIGSTOP) // one that is gone is found by look
		pause(ctx, s.For)
		_ = m.proc.Process.Signal(syscall.SIGCONT)
		return
	}
	h.look(m)
	m.pid.Store(0)
	m.proc.kill()
	pause(ctx, s.For)
	if m != h.server { // builds take turns
		m.build = (m.build + 1) % len(h.builds)
	}
	h.fill(m)
}

// freeze stops a worker with SIGSTOP until it is to go on, if no other is frozen.
func (h *house) freeze(pid int) (thaw func()) {
	i := slices.IndexFunc(h.rooms[:], func(m *room) bool { return m.pid.Load() == int64(pid) })
	if i < 0 || !h.frozen.CompareAndSwap(false, true) {
		return nil
	}
	signal := func(s syscall.Signal) {
		if h.rooms[i].pid.Load() == int64(pid) { // else it was killed meanwhile
			_ = syscall.Kill(pid, s)
		}
	}
	signal(syscall.SIGSTOP)
	return func() {
		signal(syscall.SIGCONT)
		h.frozen.Store(false)
	}
}

// look finds out whether a process has ended by itself, which none may.
func (h *house) look(m *room) {
	if m.proc.ended() {
		h.report.find(wrong, "", "", "%s ended by itself: %v; see %s.log", m.name, m.proc.ProcessState, m.name)
	}
}

// refill bounds how long a process may take to be there again: a worker can't
// begin without a server, and is started again until it can.
const refill = time.Minute

func (h *house) fill(m *room) {
	for since := time.Now(); !h.over.Load(); {
		p, err := h.start(h.builds[m.build], m.command, m.name)
		if err == nil {
			m.proc = p
			m.pid.Store(int64(p.Process.Pid))
			return
		}
		if !errors.Is(err, errEarly) || time.Since(since) > refill {
			h.report.find(wrong, "", "", "%s did not come back: %v", m.name, err)
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// mend replaces what has ended by itself, which is told.
func (h *house) mend() {
	for _, m := range h.all() {
		m.mu.Lock()
		if h.look(m); m.proc.ended() {
			h.fill(m)
		}
		m.mu.Unlock()
	}
}

// deploy lets workers of the newest build take the place of those of older ones.
func (h *house) deploy() {
	newest := len(h.builds) - 1
	for _, m := range h.rooms {
		m.mu.Lock()
		if m.build != newest {
			h.look(m)
			m.pid.Store(0)
			_ = m.proc.Process.Signal(syscall.SIGCONT) // it may be frozen
			m.proc.dismiss()
			m.build = newest
			h.fill(m)
		}
		m.mu.Unlock()
	}
}
