package client

import "time"

// pollTimer says when to look without a notice: a server loses about one notice in a
// hundred. It fires less and less often. So a lost notice costs at most as much time as
// has passed since the last news, and never more than most.
type pollTimer struct {
	timer *time.Timer
	wait  time.Duration
	most  time.Duration
}

const (
	// pollFor is the wait before the first look, and the timeout of a status query.
	pollFor = time.Second
	// restFor is the timeout of a second query to a suspended run, whose worker may be
	// busy.
	restFor = 5 * time.Second
	// pollMost is the longest wait before a look; the server ends a long poll after the
	// same time.
	pollMost = 20 * time.Second
	// pollBlind is the longest wait if no history is followed.
	pollBlind = 5 * time.Second
)

func newPollTimer() *pollTimer {
	return &pollTimer{timer: time.NewTimer(pollFor), wait: pollFor, most: pollMost}
}

// begin starts over with the shortest wait, because there was news.
func (l *pollTimer) begin() {
	l.wait = pollFor
	l.timer.Reset(l.wait)
}

// due receives when it is time to look. The receiver then calls next.
func (l *pollTimer) due() <-chan time.Time { return l.timer.C }

// next starts the next wait, which is longer than the last one.
func (l *pollTimer) next() {
	l.wait = min(2*l.wait, l.most)
	l.timer.Reset(l.wait)
}

func (l *pollTimer) stop() { l.timer.Stop() }
