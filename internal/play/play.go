package play

import (
	"cmp"
	"context"
	"encoding/json"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
	"github.com/fermata-agents/fermata/tool"
)

// Function is a flow's function. It gets the run's input and returns what the run completes
// with.
type Function func(c *Context, input []byte) (Done, error)

// Done is what a function has returned. Output is empty if the result is a text.
type Done struct {
	Text   string
	Output json.RawMessage
	// Files are files of the input or of results that the run gives back.
	Files []agent.File
}

// Step is a step that a function waits for.
type Step struct {
	wire.FlowStep
	// Do is the code of a step of the flow's own; nil if a tool does the step.
	Do func(context.Context, *tool.Call) (string, error)
}

// Result is what a step came to, as the log has it. Size is the length of the whole text if
// Text was cut, else zero.
type Result struct {
	Path   string
	Tool   string
	Status agent.CallStatus
	Text   string
	Size   int
	// Code is that of the error with which a tool, or code of the flow's own, has failed.
	Code agent.Code
	// Files are the files that came with the result. LeftFiles counts others, which are not kept.
	Files     []agent.File
	LeftFiles int
	At        time.Time
	// Arguments are those with which the step was made. Inherited means that another run made it,
	// from which this one has forked: then the result counts only for the same arguments.
	Arguments json.RawMessage
	Inherited bool
	// Said are the messages that came before the result, and after the one before it.
	Said []agent.Message
	// unclear is set if the step was dropped and nobody knows whether it had its effect: then it is
	// the tool.
	unclear *agent.ToolSpec
}

// countsFor reports whether the result is that of a step. An approval counts only for what was
// approved. A step that was dropped and may have had its effect fails if the function asks for it
// again, unless it may be made again.
func (r Result) countsFor(s Step) bool {
	if r.unclear != nil && s.MayRepeat(*r.unclear) {
		return false
	}
	if !r.Inherited && s.Tool != agent.ApproveTool {
		return true
	}
	return r.Tool == s.Tool && sameJSON(r.Arguments, s.Arguments)
}

// holdsIn reports whether a run that forks the result's run takes it over.
func (r Result) holdsIn(f agent.Forked) bool {
	return f.Keeps(r.Path, r.Tool, r.Status, r.unclear != nil) && (!f.ReplaceInput || saysWhatItUses(r.Tool, r.Arguments))
}

// saysWhatItUses reports whether a step's arguments have all that it depends on. The flow's own code
// also uses variables of the function, unless its arguments say what.
func saysWhatItUses(tool string, arguments json.RawMessage) bool {
	return tool != agent.DoTool || !sameJSON(arguments, json.RawMessage("{}"))
}

// Play is a function in progress. It is for one caller at a time.
type Play struct {
	now      time.Time
	known    map[string]Result
	waits    map[string]*waiting
	dropped  map[string]bool // steps whose results nobody waits for any more
	asked    int             // steps so far
	ready    []*strand
	done     Done
	err      error
	ended    bool
	messages []agent.Message
	files    []agent.File           // of the input
	rest     []Result               // what [Play.Run] has not delivered yet
	timer    *time.Timer            // ends if the function takes longer than within
	within   atomic.Int64           // in nanoseconds
	visited  map[string]bool        // paths that were asked for; nil if nobody wants to know
	running  atomic.Pointer[strand] // the goroutine whose turn it is
	misused  chan error             // why the function fails although its own goroutines go on
	fault    error                  // what came by misused
	over     chan struct{}          // closed when the play is given up
	close    sync.Once

	// While a strand hangs, it alone may use what is above; its goroutine goes on by itself.
	delivered atomic.Int64 // how many results the function got
	hung      *hang
	later     []Result // what comes after rest
}

// waiting is a step that a strand waits for.
type waiting struct {
	Step
	strand *strand
	scope  *scope
	n      int // the step's number in the order of asking
}

// strand is one of a play's goroutines.
type strand struct {
	play *Play
	wake chan struct{}
	back chan struct{}          // it waits for a step, or has ended
	gone chan struct{}          // closed when it has ended
	id   atomic.Pointer[string] // of the goroutine
	// entry is the function that the goroutine began with, the same for all strands.
	entry uintptr
}

// Start returns a play of a function. Nothing of it runs before [Play.Run]. at is the time at
// which the run began.
func Start(f Function, input []byte, at time.Time) *Play {
	p := &Play{now: at, known: map[string]Result{}, waits: map[string]*waiting{}, dropped: map[string]bool{}, misused: make(chan error, 1), over: make(chan struct{}), timer: time.NewTimer(0)}
	p.spawn(&Context{play: p, scope: newScope(nil, "")}, func(c *Context) {
		p.done, p.err = f(c, input)
		p.ended = true
	})
	return p
}

// WithFiles gives the function the files of its input. It is called before the first [Play.Run].
func (p *Play) WithFiles(files []agent.File) *Play {
	p.files = files
	return p
}

// Run delivers results in the order of the log, and lets the function run until it waits. Each
// result is delivered when the function waits again after the one before: so a play that is
// run again goes the same way. The error is [ErrHangs], with the function's stack, if the
// function takes longer than within after a result, and the context's cause if that ends before.
// Then only Run, [Play.Hangs], [Play.Delivered] and [Play.Close] may be called: the next Run waits
// for the function, and then goes on.
func (p *Play) Run(ctx context.Context, within time.Duration, results []Result) error {
	p.within.Store(int64(within))
	p.timer.Reset(within)
	defer p.timer.Stop()
	p.later = append(p.later, results...)
	if err := p.awaitHung(ctx); err != nil {
		return err
	}
	p.rest, p.later = append(p.rest, p.later...), nil
	for {
		if err := p.settle(ctx); err != nil {
			return err
		}
		if p.ended || len(p.rest) == 0 {
			return nil
		}
		p.deliver(p.nextResult())
	}
}

// nextResult takes the next result of those that [Play.Run] delivers.
func (p *Play) nextResult() Result {
	r := p.rest[0]
	p.rest = p.rest[1:]
	p.delivered.Add(1)
	p.timer.Reset(time.Duration(p.within.Load()))
	if r.At.After(p.now) {
		p.now = r.At
	}
	p.messages = append(p.messages, r.Said...)
	return r
}

// isNext reports whether the next result is that of a step which a strand is about to wait for, and
// no other strand would run before it comes. Then the strand goes on without a change of goroutines,
// which takes most of the time of a long function that runs again.
func (p *Play) isNext(path string, s Step) bool {
	return len(p.ready) == 0 && len(p.rest) > 0 && p.rest[0].Path == path && p.rest[0].countsFor(s)
}

// Steps returns the steps that the function waits for, in the order in which it asked.
func (p *Play) Steps() []Step {
	all := make([]*waiting, 0, len(p.waits))
	for _, w := range p.waits {
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b *waiting) int { return a.n - b.n })
	steps := make([]Step, len(all))
	for i, w := range all {
		steps[i] = w.Step
	}
	return steps
}

// WaitsFor reports whether the function waits for a step.
func (p *Play) WaitsFor(path string) bool { return p.waits[path] != nil }

// Step returns a step that the function waits for.
func (p *Play) Step(path string) (Step, bool) {
	w, ok := p.waits[path]
	if !ok {
		return Step{}, false
	}
	return w.Step, true
}

// Done returns what the function has returned; ended is false while it has not.
func (p *Play) Done() (d Done, ended bool, err error) { return p.done, p.ended, p.err }

// Close gives the play up: its goroutines end where they wait.
func (p *Play) Close() { p.close.Do(func() { close(p.over) }) }

func (p *Play) deliver(r Result) {
	w := p.waits[r.Path]
	if w != nil && !r.countsFor(w.Step) {
		return
	}
	if p.known[r.Path] = r; w != nil {
		delete(p.waits, r.Path)
		p.ready = append(p.ready, w.strand)
	}
}

// settle lets the goroutines run, one at a time, until all of them wait.
func (p *Play) settle(ctx context.Context) error {
	for len(p.ready) > 0 && !p.ended {
		s := p.ready[0]
		p.ready = p.ready[1:]
		p.running.Store(s)
		s.wake <- struct{}{}
		if err := p.await(ctx, s, s.back); err != nil { // its goroutine still runs: the play must not be read
			p.hung = newHang(s)
			return err
		}
		p.checkMisuse()
	}
	return nil
}

// await waits until a strand waits or has ended, as a channel says. The error says that it does
// neither.
func (p *Play) await(ctx context.Context, s *strand, back <-chan struct{}) error {
	for {
		select {
		case <-back:
			return nil
		case p.fault = <-p.misused:
		case <-p.timer.C:
			return cmp.Or(p.fault, s.hangs())
		case <-ctx.Done():
			return cmp.Or(p.fault, context.Cause(ctx))
		}
	}
}

// checkMisuse fails the function if it has misused its context.
func (p *Play) checkMisuse() {
	select {
	case p.fault = <-p.misused:
	default:
	}
	if p.fault != nil {
		p.ended, p.err = true, p.fault
	}
}

// spawn makes a goroutine that runs when it is its turn.
func (p *Play) spawn(c *Context, do func(*Context)) {
	s := &strand{play: p, wake: make(chan struct{}), back: make(chan struct{}), gone: make(chan struct{})}
	c.own = s
	p.ready = append(p.ready, s)
	go func() {
		defer close(s.gone)
		select {
		case <-s.wake:
		case <-p.over:
			return
		}
		id := goroutineID()
		s.id.Store(&id)
		s.entry = goroutineEntry()
		defer func() {
			if r := recover(); r != nil {
				p.ended, p.err = true, agent.Errorf(agent.CodeFlowFailed, "the flow panicked: %v\n%s", r, firstFrames(debug.Stack()))
			}
			select {
			case s.back <- struct{}{}:
			case <-p.over:
			}
		}()
		do(c)
	}()
}

// pause lets others run until somebody makes the strand ready. In a play that was given up it
// ends the goroutine: the function's own code cannot keep it.
func (s *strand) pause() {
	select {
	case s.back <- struct{}{}:
	case <-s.play.over:
		runtime.Goexit()
	}
	select {
	case <-s.wake:
	case <-s.play.over:
		runtime.Goexit()
	}
}

// goroutineEntry returns the address of the function that this goroutine began with.
func goroutineEntry() uintptr {
	var some [64]uintptr
	pcs := some[:]
	n := runtime.Callers(0, pcs)
	for n == len(pcs) { // the last ones say it
		pcs = make([]uintptr, 2*n)
		n = runtime.Callers(0, pcs)
	}
	return runtime.FuncForPC(pcs[n-2]).Entry() // the last is the runtime's own
}
