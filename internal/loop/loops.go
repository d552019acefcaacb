package loop

import (
	"slices"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/glob"
	"github.com/fermata-agents/fermata/internal/wire"
)

// Loops is the part that finds the repetitions that the Spec's loop_detection names. It is zero if
// that names none. [Turn] counts equal calls in a row, which every run looks for.
type Loops struct {
	// Calls are the digests of the last calls, the newest last; as many as the longest cycle needs.
	Calls []string `json:"calls,omitempty"`
	// Equal count the run's equal calls, the newest last, with loop_detection.scope.
	Equal []EqualCalls `json:"equal,omitempty"`
	// Results count equal results in a row, by tool.
	Results []ResultCount `json:"results,omitempty"`
	// Idle counts the turns in a row that brought the run no further.
	Idle int `json:"idle,omitempty"`
}

// EqualCalls is how often the run has made a call.
type EqualCalls struct {
	Digest string `json:"digest"`
	N      int    `json:"n"`
}

// equalFrame is the length of EqualCalls in JSON at most: 16 hex digits and a number.
const equalFrame = 48

// ResultCount is how often in a row a tool has returned the same result.
type ResultCount struct {
	Tool   string `json:"tool"`
	Digest string `json:"digest"`
	N      int    `json:"n"`
}

// longestCycle is how many calls a cycle may have. maxResultCounts bounds the tools whose results
// are counted, and maxEqualCalls the calls: the one that was made longest ago is dropped.
const (
	shortestCycle   = 2
	longestCycle    = 3
	maxResultCounts = 32
	maxEqualCalls   = 64
	maxEqualCount   = 1 << 20
)

func (l Loops) clone() Loops {
	l.Calls, l.Equal, l.Results = slices.Clip(l.Calls), slices.Clone(l.Equal), slices.Clone(l.Results)
	return l
}

// reset forgets all calls and results.
func (l *Loops) reset() { *l = Loops{} }

// called remembers a call by its digest.
func (l *Loops) called(digest string, d agent.LoopDetection) {
	if d.Cycles == 0 {
		return
	}
	l.Calls = append(l.Calls, digest)
	l.Calls = slices.Clone(l.Calls[max(0, len(l.Calls)-longestCycle*d.Cycles):])
}

// cycle returns the length of the cycle that the last calls have repeated that many times; zero if
// there is none. Equal calls alone are no cycle: they are counted elsewhere.
func (l *Loops) cycle(rounds int) int {
	for length := shortestCycle; rounds > 0 && length <= longestCycle; length++ {
		n := len(l.Calls) - length*rounds
		if n < 0 {
			continue
		}
		last := l.Calls[n:]
		repeats := !slices.ContainsFunc(last, func(d string) bool { return d != last[0] })
		for i := length; i < len(last) && !repeats; i++ {
			repeats = last[i] != last[i-length]
		}
		if !repeats {
			return length
		}
	}
	return 0
}

// equal counts a call over the whole run, and returns how often it was made.
func (l *Loops) equal(digest string) int {
	c := EqualCalls{Digest: digest}
	if i := slices.IndexFunc(l.Equal, func(o EqualCalls) bool { return o.Digest == digest }); i >= 0 {
		c = l.Equal[i]
		l.Equal = slices.Delete(l.Equal, i, i+1)
	}
	c.N = min(max(c.N, 0), maxEqualCount) + 1 // an import may have any number
	l.Equal = append(l.Equal, c)
	l.Equal = l.Equal[max(0, len(l.Equal)-maxEqualCalls):]
	return c.N
}

// returned counts a tool's result, and returns how often in a row it was the same.
func (l *Loops) returned(tool, digest string) int {
	c := ResultCount{Tool: tool, Digest: digest}
	if i := slices.IndexFunc(l.Results, func(o ResultCount) bool { return o.Tool == tool }); i >= 0 {
		if l.Results[i].Digest == digest {
			c.N = l.Results[i].N
		}
		l.Results = slices.Delete(l.Results, i, i+1)
	}
	c.N++
	l.Results = append(l.Results, c)
	l.Results = l.Results[max(0, len(l.Results)-maxResultCounts):]
	return c.N
}

// moved forgets the idle turns so far, since the run gets further.
func (l *Loops) moved() { l.Idle = 0 }

// mayBeIdle counts a turn whose whole reply has come, until it shows that the run gets further. A turn
// without one says nothing about the model: it was interrupted, paused by the provider, or failed.
func (s *step) mayBeIdle() {
	if s.Spec.LoopDetection.Idle > 0 {
		s.Loops.Idle = max(s.Loops.Idle, 0) + 1 // an import may have any number
	}
}

// interrupted takes back the turn as an idle one, and ends the row in which cycles are looked for.
func (l *Loops) interrupted() { l.Calls, l.Idle = nil, max(l.Idle-1, 0) }

// callsAreProgress reports whether calls get the run further, whatever comes of them. With an idle count only
// those do that succeed.
func (s *step) callsAreProgress() bool { return s.Spec.LoopDetection.Idle == 0 }

// movedOn ends the count of idle turns, and the attempts of its remedy.
func (s *step) movedOn() {
	if s.Spec.LoopDetection.Idle > 0 {
		s.Loops.moved()
		s.Recovery.reset(agent.FailureNoProgress)
	}
}

// idled returns the error of too many turns that brought the run no further; nil if there were fewer, or
// if the next turn begins with a message.
func (s *step) idled() *agent.Error {
	most := s.Spec.LoopDetection.Idle
	if most == 0 || s.Loops.Idle < most || s.Messages.steers() {
		return nil
	}
	return agent.Errorf(agent.CodeStuck, "the last %d turns brought the run no further (loop_detection.idle)", most)
}

// mayRepeat reports whether a tool may be called again and again.
func (s *step) mayRepeat(tool string) bool { return glob.MatchesAny(s.Spec.LoopDetection.Exempt, tool) }

// countEqual counts a reply's i-th call, and returns how many equal ones came: in a row, or in the run.
func (s *step) countEqual(i int, c agent.ToolCall, digest string) int {
	if s.mayRepeat(c.Tool) || s.mayWait(c.Tool, c.Arguments) {
		s.Turn.endRepeat()
		return 0
	}
	s.Loops.called(digest, s.Spec.LoopDetection)
	n := s.Turn.countRepeat(i, digest)
	if s.Spec.LoopDetection.Scope == agent.LoopScopeRun {
		n = s.Loops.equal(digest)
	}
	return n
}

// otherLoop looks for cycles, and for equal calls in one reply. It reports whether it found a loop.
func (s *step) otherLoop(calls []agent.ToolCall, r wire.Reply) bool {
	d := s.Spec.LoopDetection
	if n := s.Loops.cycle(d.Cycles); n > 0 {
		s.loops(agent.Errorf(agent.CodeLoopDetected, "the model made the same %d calls in the same order %d times in a row (loop_detection.cycles)", n, d.Cycles))
		return true
	}
	if d.Parallel == 0 {
		return false
	}
	equal := map[string]int{}
	for i, c := range calls {
		if s.mayRepeat(c.Tool) {
			continue
		}
		same := sameOf(r, i, c)
		if equal[same]++; same != "" && equal[same] >= d.Parallel {
			s.loops(agent.Errorf(agent.CodeLoopDetected, "one reply of the model has %d equal calls of %s (loop_detection.parallel)", d.Parallel, c.Tool))
			return true
		}
	}
	return false
}

// equalResults looks for a tool that returns the same again and again, in the calls of a turn that
// is over. It reports whether it found a loop.
func (s *step) equalResults(calls []Call) bool {
	most := s.Spec.LoopDetection.Results
	for _, c := range calls {
		if most == 0 || s.mayRepeat(c.Tool) || s.interrupted(c) || c.Result.Status != agent.CallOK && c.Result.Status != agent.CallFailed {
			continue
		}
		if n := s.Loops.returned(c.Tool, digestOf(c.Tool, c.Result.Text)); n >= most {
			s.Loops.reset() // the run may go on, and only new results count then
			s.loops(agent.Errorf(agent.CodeLoopDetected, "the tool %s returned the same result %d times in a row (loop_detection.results)", c.Tool, most))
			return true
		}
	}
	return false
}
