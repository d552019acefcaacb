package client

import "time"

// pollTimer are for what a history should have told: about one notice in a hundred is lost
// in the server. They come ever more seldom, so that what is lost costs at most as much
// time as has gone by since there was something, and never more than most.
type pollTimer struct {
	timer *time.Timer
	wait  time.Duration
	most  time.Duration
}

const (
	// pollFor is how long the first look waits, and a question to a run that does not answer.
	pollFor = time.Second
	// restFor is how long a run that rests is asked once more: its worker may be busy.
	restFor = 5 * time.Second
	// pollMost is how long a look waits at most; the server ends a long poll as soon.
	pollMost = 20 * time.Second
	// pollBlind is the same where no history is there to be followed.
	pollBlind = 5 * time.Second
)

func newPollTimer() *pollTimer {
	return &pollTimer{timer: time.NewTimer(pollFor), wait: pollFor, most: pollMost}
}

// begin begins anew: there was something.
func (l *pollTimer) begin() {
	l.wait = pollFor
	l.timer.Reset(l.wait)
}

// due receives when it is time to look. Whoever receives calls next.
func (l *pollTimer) due() <-chan time.Time { return l.timer.C }

// next waits for the next look, longer than for this one.
func (l *pollTimer) next() {
	l.wait = min(2*l.wait, l.most)
	l.timer.Reset(l.wait)
}

func (l *pollTimer) stop() { l.timer.Stop() }
