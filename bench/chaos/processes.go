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

// processes starts, disturbs and restarts the processes.
type processes struct {
	place
	server *slot
	slots  [workers]*slot
	builds []string // the last one is the newest
	report *report
	over   atomic.Bool // from now on an ended process is no fault
	frozen atomic.Bool // one of the workers is frozen
}

// slot is the place of a process. When one process ends, the next one takes its slot.
type slot struct {
	command, name string

	mu    sync.Mutex // locked while the process is disturbed
	proc  *proc
	build int
	pid   atomic.Int64
}

func open(p place, builds []string, r *report) (*processes, error) {
	h := &processes{place: p, builds: builds, report: r, server: &slot{command: serveCommand, name: "server"}}
	for i := range h.slots {
		h.slots[i] = &slot{command: workCommand, name: fmt.Sprintf("worker-%d", i), build: i % len(builds)}
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

// all lists the slots, the server's first.
func (h *processes) all() []*slot { return append([]*slot{h.server}, h.slots[:]...) }

// close ends all processes, the server last.
func (h *processes) close() {
	h.over.Store(true)
	for i := len(h.slots); i >= 0; i-- {
		m := h.all()[i]
		m.mu.Lock()
		if m.proc != nil {
			_ = m.proc.Process.Signal(syscall.SIGCONT) // a running one does not mind
			m.proc.dismiss()
		}
		m.mu.Unlock()
	}
}

// disturb does what is planned. It returns when the process is back.
func (h *processes) disturb(ctx context.Context, s disturbance) {
	m := h.server
	if s.Kind != disturbServer {
		m = h.slots[s.Worker]
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	h.report.struck(s.Kind)
	if s.Kind == disturbFreeze {
		_ = m.proc.Process.Signal(syscall.SIGSTOP) // look finds a process that is gone
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
	h.startSlot(m)
}

// freeze stops a worker with SIGSTOP until thaw is called. It returns nil if another one
// is frozen.
func (h *processes) freeze(pid int) (thaw func()) {
	i := slices.IndexFunc(h.slots[:], func(m *slot) bool { return m.pid.Load() == int64(pid) })
	if i < 0 || !h.frozen.CompareAndSwap(false, true) {
		return nil
	}
	signal := func(s syscall.Signal) {
		if h.slots[i].pid.Load() == int64(pid) { // otherwise it was killed before
			_ = syscall.Kill(pid, s)
		}
	}
	signal(syscall.SIGSTOP)
	return func() {
		signal(syscall.SIGCONT)
		h.frozen.Store(false)
	}
}

// look reports a process that ended by itself. No process may do that.
func (h *processes) look(m *slot) {
	if m.proc.ended() {
		h.report.find(wrong, "", "", "%s ended by itself: %v; see %s.log", m.name, m.proc.ProcessState, m.name)
	}
}

// refill bounds how long a process may take to be back. A worker can't start without a
// server, so it is started again until it can.
const refill = time.Minute

func (h *processes) startSlot(m *slot) {
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

// replaceEnded reports and replaces processes that ended by themselves.
func (h *processes) replaceEnded() {
	for _, m := range h.all() {
		m.mu.Lock()
		if h.look(m); m.proc.ended() {
			h.startSlot(m)
		}
		m.mu.Unlock()
	}
}

// deploy replaces workers of older builds by workers of the newest.
func (h *processes) deploy() {
	newest := len(h.builds) - 1
	for _, m := range h.slots {
		m.mu.Lock()
		if m.build != newest {
			h.look(m)
			m.pid.Store(0)
			_ = m.proc.Process.Signal(syscall.SIGCONT) // it may be frozen
			m.proc.dismiss()
			m.build = newest
			h.startSlot(m)
		}
		m.mu.Unlock()
	}
}
