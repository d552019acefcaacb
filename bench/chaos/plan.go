package main

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// plan is all that is decided before the start. It depends on the seed, the number of
// stories and the time. How its parts meet depends on the machine.
type plan struct {
	Seed         uint64           `json:"seed"`
	Stories      []story          `json:"stories"`
	Disturbances []disturbance    `json:"disturbances"`
	Commands     []plannedCommand `json:"commands"`
}

// story is a session and its first run.
type story struct {
	At      time.Duration
	Session string
	Agent   string
	Text    string
	Park    bool // it starts suspended
	// Erase says that the session is deleted at the end, and Anew that it then starts
	// again.
	Erase, Anew bool
}

// disturbance is what is done to a process or to the store.
type disturbance struct {
	At     time.Duration
	Kind   disturbanceKind
	Worker int
	// For is how long it lasts.
	For time.Duration
}

// disturbanceKind is a kind of disturbance.
type disturbanceKind string

const (
	disturbKill   disturbanceKind = "kill"   // a worker, with SIGKILL; another one replaces it
	disturbFreeze disturbanceKind = "stop"   // a worker, with SIGSTOP and later SIGCONT
	disturbServer disturbanceKind = "server" // the server, with SIGKILL; it restarts on its file
	// The store accepts requests and does not answer, like a database that is stopped.
	// When it continues it does all of them, also tasks whose result is not needed any more.
	disturbStore disturbanceKind = "store"
)

// plannedCommand is a verb that is sent to the tree of a story.
type plannedCommand struct {
	At    time.Duration
	N     int // its number; ids and names contain it
	Story int
	// Pick chooses a session of the tree, or an open request.
	Pick int
	Verb agent.Verb
	// Signal says that it is sent as a signal. Twice says that it is sent twice at once,
	// with one id.
	Signal, Twice bool
	// Newer says that it is sent in a form that only the newer build knows, if there is
	// one.
	Newer bool
}

// What is done from outside besides a run's verbs.
const (
	doNext  agent.Verb = "next" // a message that starts the session's next run
	doFork  agent.Verb = "fork"
	doRetry agent.Verb = "retry"
)

// often says how often a verb is chosen.
var often = []struct {
	verb agent.Verb
	n    int
}{
	{agent.VerbAnswer, 12}, {agent.VerbResume, 6}, {agent.VerbSend, 6}, {agent.VerbEmit, 6}, {agent.VerbPause, 2}, {agent.VerbInterrupt, 3},
	{agent.VerbStop, 1}, {agent.VerbCancel, 1}, {doNext, 3}, {doFork, 1}, {doRetry, 1},
}

const (
	workers = 3
	// daemons is how many stories there are to each daemon among them.
	daemons = 10
	// tours is how many stories there are to each flow among them.
	tours = 4
	// The average times between disturbances; the server is disturbed rarely.
	betweenStrikes = 3 * time.Second
	betweenServers = 20 * time.Second
	betweenStores  = 60 * time.Second
	betweenSayings = 250 * time.Millisecond
)

func newPlan(o *options) *plan {
	stories, lasts := o.runs, o.lasts
	p := &plan{Seed: o.seed}
	d := p.dice("plan")
	begins := make([]time.Duration, stories)
	for i := range begins {
		begins[i] = between(d, 0, lasts*2/3)
	}
	slices.Sort(begins)
	for i, at := range begins {
		s := story{At: at, Session: fmt.Sprintf("chaos-%d", i), Agent: leadAgent, Text: fmt.Sprintf("story %d", i), Park: d.IntN(10) == 0, Erase: d.IntN(3) == 0, Anew: d.IntN(2) == 0}
		if i%daemons == daemons-1 {
			s.Agent, s.Park = daemonAgent, false
		}
		if i%tours == tours-1 && s.Agent == leadAgent {
			s.Agent = tourAgent
		}
		p.Stories = append(p.Stories, s)
	}
	for at := between(d, time.Second, betweenStrikes); at < lasts; at += between(d, betweenStrikes/2, betweenStrikes*3/2) {
		s := disturbance{At: at, Kind: disturbKill, Worker: d.IntN(workers), For: between(d, 0, 2*time.Second)}
		if d.IntN(3) == 0 {
			s.Kind, s.For = disturbFreeze, between(d, time.Second, 20*time.Second)
			if s.For > 18*time.Second { // when it wakes, others have long continued its runs
				s.For = 90 * time.Second
			}
		}
		p.Disturbances = append(p.Disturbances, s)
	}
	for at := between(d, betweenServers/4, betweenServers/2); at < lasts; at += between(d, betweenServers/2, betweenServers*3/2) {
		p.Disturbances = append(p.Disturbances, disturbance{At: at, Kind: disturbServer, For: between(d, 0, 2*time.Second)})
	}
	// Dice of their own: a change here must not change the plan above for a seed.
	d = p.dice("store")
	for at := between(d, betweenStores/6, betweenStores/2); at < lasts; at += between(d, betweenStores/2, betweenStores*3/2) {
		p.Disturbances = append(p.Disturbances, disturbance{At: at, Kind: disturbStore, For: between(d, 2*time.Second, 40*time.Second)})
	}
	d = p.dice("sayings")
	for at := p.Stories[0].At; at < lasts; at += between(d, 0, 2*betweenSayings) {
		begun, _ := slices.BinarySearchFunc(p.Stories, at+1, func(s story, t time.Duration) int { return cmp.Compare(s.At, t) })
		p.Commands = append(p.Commands, plannedCommand{
			At: at, N: len(p.Commands), Story: d.IntN(begun), Pick: d.IntN(1000), Verb: pickVerb(d),
			Signal: d.IntN(3) == 0, Twice: d.IntN(6) == 0, Newer: d.IntN(3) == 0,
		})
	}
	if o.keepServer {
		p.Disturbances = slices.DeleteFunc(p.Disturbances, func(s disturbance) bool { return s.Kind == disturbServer })
	}
	slices.SortStableFunc(p.Disturbances, func(a, b disturbance) int { return cmp.Compare(a.At, b.At) })
	return p
}

func pickVerb(d *rand.Rand) agent.Verb {
	sum := 0
	for _, o := range often {
		sum += o.n
	}
	n := d.IntN(sum)
	for _, o := range often {
		if n -= o.n; n < 0 {
			return o.verb
		}
	}
	return agent.VerbSend
}

func between(d *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(d.Int64N(int64(to-from)+1))
}

// dice returns the same numbers for the same seed and words, in any order of calls.
func (p *plan) dice(words ...any) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintln(h, words...)
	return rand.New(rand.NewPCG(p.Seed, h.Sum64()))
}
