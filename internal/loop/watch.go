package loop

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Watch is the part that keeps what an idle daemon knows of the files that it watches. A look is an
// activity beside the suspension: the run stays suspended, and what the look returns counts only while
// the run still idles. A lost look changes nothing, since the next one compares with the same marks.
type Watch struct {
	// Marks are how the files looked when they were last compared; nil before the first look.
	Marks []agent.FileMark `json:"marks,omitempty"`
	// LookAt is when the next look is due; zero until the daemon idles.
	LookAt time.Time `json:"look_at,omitzero"`
	// Looking means that the look N is in flight.
	Looking bool  `json:"looking,omitempty"`
	N       int64 `json:"n,omitempty"`
}

// LookArgs are the arguments of the activity that looks at the files that a daemon watches. Repeating it
// changes nothing.
type LookArgs struct {
	Session string   `json:"session"`
	Paths   []string `json:"paths"`
	// Marks are those of the last look; nil for the first one.
	Marks []agent.FileMark `json:"marks,omitempty"`
}

// maxNews is how many bytes of names of changed files a message has.
const maxNews = 2 << 10

// schedule sets when the next look is due.
func (w *Watch) schedule(at time.Time) { w.LookAt = at }

// begin records that a look is in flight.
func (w *Watch) begin() { w.Looking, w.N = true, w.N+1 }

// over records that no look is in flight: one has come back, or its execution is gone.
func (w *Watch) over() { w.Looking = false }

// take keeps what a look has seen, and reports whether that is a change. The first look is what later
// ones are compared with. The state keeps the marks, so it bounds their digests.
func (w *Watch) take(marks []agent.FileMark) (changed bool) {
	marks = slices.Clone(marks)
	for i, m := range marks {
		marks[i].Digest = fit(m.Digest, maxMark)
	}
	changed = w.Marks != nil && !slices.Equal(w.Marks, marks)
	w.Marks = marks
	return changed
}

// reset forgets all that was seen. Another machine's files have other times.
func (w *Watch) reset(at time.Time) { *w = Watch{LookAt: at, N: w.N} }

// changedFiles says which files have changed, as far as a message has room for it. Names are quoted:
// whoever may write a file chooses its name, and any worker may have written what was seen. bytes counts
// the names, each with what separates it from the next.
func changedFiles(seen agent.FilesSeen) (text string, bytes int) {
	names, size, more := []string{}, 0, max(seen.More, 0)
	for i, path := range seen.Changed {
		if size += jsonLen(path) + len(`"", `); size > maxNews {
			more += len(seen.Changed) - i
			break
		}
		names, bytes = append(names, strconv.Quote(path)), bytes+len(path)+1
	}
	switch {
	case more > 0:
		names = append(names, fmt.Sprintf("and %d more", more))
	case len(names) == 0: // the change wakes the daemon all the same
		names = append(names, "some of them")
	}
	return strings.Join(names, ", "), bytes
}

// watches reports whether the run is an idle daemon that watches files.
func (s *State) watches() bool { return s.idling() && len(s.daemon().Watch) > 0 }

// watchFiles schedules a daemon's first look as soon as it idles: it is what later ones are compared
// with. A daemon that has idled before compares with its last look, so it notices what has changed
// while it worked.
func (s *step) watchFiles() {
	if !s.watches() {
		return
	}
	at := s.now()
	if s.Watch.Marks != nil {
		at = at.Add(time.Duration(s.daemon().WatchEvery))
	}
	// A look that was due before stays due, or events would put it off for ever.
	if s.Watch.LookAt.IsZero() || at.Before(s.Watch.LookAt) {
		s.Watch.schedule(at)
	}
}

// changeWakes reports whether changed files would wake the run. Only then it looks at them: not while it is
// held.
func (s *step) changeWakes() bool {
	return s.watches() && s.ready() && s.isAtRest() && s.Suspensions.published() && !s.Holds.any() && s.End.Stopping == nil
}

// mustLook reports whether the next look begins. Looks come one at a time.
func (s *step) mustLook() bool {
	return s.changeWakes() && !s.Watch.Looking && reached(s.Watch.LookAt, s.At)
}

// lookDue returns when the next look is due; zero if none is. One that is overdue waits for the look in
// flight, and not for a timer.
func (s *step) lookDue() time.Time {
	if !s.changeWakes() || s.Watch.Looking && reached(s.Watch.LookAt, s.At) {
		return time.Time{}
	}
	return s.Watch.LookAt
}

// look asks for a look, and schedules the next one: when this one comes back, the timer is set already.
func (s *step) look() {
	s.Watch.begin()
	s.Watch.schedule(s.now().Add(time.Duration(s.daemon().WatchEvery)))
	s.do(Look{LookArgs: LookArgs{Session: s.Session, Paths: s.daemon().Watch, Marks: s.Watch.Marks}, N: s.Watch.N})
}

// looked takes the result of [Look]. What came too late, or while the run is held, is left: the next look
// compares with the same marks.
func (s *step) looked(in Looked) error {
	if !s.Watch.Looking || in.N != s.Watch.N {
		return s.refuse("no such look is in flight")
	}
	s.Watch.over()
	if !s.changeWakes() || in.Err != nil || len(in.Seen.Marks) != len(s.daemon().Watch) {
		return nil
	}
	if s.Watch.take(in.Seen.Marks) {
		s.changedFiles, s.changedBytes = changedFiles(in.Seen)
	}
	return nil
}

// steerFiles adds a message for the next turn that names the changed files.
func (s *step) steerFiles() {
	m := wakeMessage(fmt.Sprintf("Files that you watch have changed: %s. It is %s.", s.changedFiles, s.now().Format(time.RFC3339)))
	s.steerAs(m, s.changedBytes, messageFrame+resultJSONLen("", s.changedBytes))
	s.changedFiles, s.changedBytes = "", 0
}
