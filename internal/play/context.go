package play

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Context is what a function asks for steps with. Each branch has its own.
type Context struct {
	play  *Play
	scope *scope
	own   *strand
}

// scope is a named part of a function: an item of a fan-out, or a branch.
type scope struct {
	path    string
	above   *scope
	counts  map[string]int // how often each name was used
	dropped bool
}

func newScope(above *scope, path string) *scope {
	return &scope{path: path, above: above, counts: map[string]int{}}
}

// next returns the next path under a name: "a", "a#2", "a#3".
func (s *scope) next(name string) string {
	s.counts[name]++
	if n := s.counts[name]; n > 1 {
		name += "#" + strconv.Itoa(n)
	}
	return s.under(name)
}

// under returns the path of a name in the scope.
func (s *scope) under(name string) string {
	if s.path == "" {
		return name
	}
	return s.path + "/" + name
}

// isDropped reports whether nobody waits for the scope's steps any more.
func (s *scope) isDropped() bool {
	for ; s != nil; s = s.above {
		if s.dropped {
			return true
		}
	}
	return false
}

// ErrDropped is the error of a step whose result nobody waits for any more, because the
// branches beside it have decided.
var ErrDropped = errors.New("dropped: the branches beside it have decided")

// maxPath bounds a step's path, in bytes.
const maxPath = 200

// Now returns the time of the last result that the function got, or of the run's start.
func (c *Context) Now() time.Time { return c.play.now }

// Messages returns the messages that were sent to the run so far.
func (c *Context) Messages() []agent.Message { return slices.Clone(c.play.messages) }

// Files returns the files of the run's input.
func (c *Context) Files() []agent.File { return slices.Clone(c.play.files) }

// Do asks for a step and waits for its result. The step's path is made of the scope and a name.
func (c *Context) Do(name string, step Step) (Result, error) {
	path := c.scope.next(Clean(name))
	if len(path) > maxPath {
		panic(fmt.Sprintf("the path of step %.40s… has %d bytes, and %d are allowed: nest less deeply, or use shorter names and keys", path, len(path), maxPath))
	}
	p := c.play
	if p.visited != nil {
		p.visited[path] = true
	}
	if c.scope.isDropped() {
		p.dropped[path] = true
		return Result{Path: path}, ErrDropped
	}
	if r, ok := p.take(path); ok && r.countsFor(step) {
		return r, nil
	}
	next := p.isNext(path, step)
	if !next || p.delivered.Load()%checkEvery == 0 {
		c.check()
	}
	if next {
		return p.nextResult(), nil
	}
	if p.waits[path] != nil {
		panic(fmt.Sprintf("two steps have the path %s: use a context only in its own branch", path))
	}
	step.ProviderID = path
	p.asked++
	p.waits[path] = &waiting{Step: step, strand: c.own, scope: c.scope, n: p.asked}
	c.own.pause()
	r, ok := p.take(path)
	if !ok {
		return Result{Path: path}, ErrDropped
	}
	return r, nil
}

// take returns the result of a step, and forgets it: a path is asked for once, and a long flow
// would keep all of them.
func (p *Play) take(path string) (r Result, ok bool) {
	r, ok = p.known[path]
	delete(p.known, path)
	return r, ok
}

// Scope returns a context for a named part of the function, in the same branch.
func (c *Context) Scope(name string) *Context {
	return &Context{play: c.play, own: c.own, scope: newScope(c.scope, c.scope.next(cleanScope(name)))}
}

// Fan runs a function for each of n items, at most width at once, each in a branch of its own
// with the scope NAME.KEY. over is asked after each item whether the fan-out is over; then the
// branches that have not ended are dropped. Fan returns when every branch has ended, with the path of
// the fan-out.
func (c *Context) Fan(name string, keys []string, width int, do func(c *Context, i int), over func() bool) (path string) {
	c.check()
	if len(keys) == 0 { // no number is used up: the paths of other fan-outs of the name are recorded
		return c.scope.under(cleanScope(name))
	}
	base := c.scope.next(cleanScope(name))
	scopes, ended := make([]*scope, len(keys)), make([]bool, len(keys))
	for i, key := range keys {
		scopes[i] = newScope(c.scope, base+"."+Clean(key))
	}
	next, working := 0, min(width, len(keys))
	decided := false
	for range working {
		c.play.spawn(&Context{play: c.play}, func(w *Context) {
			for next < len(keys) && !over() && !c.scope.isDropped() {
				i := next
				next++
				w.scope = scopes[i]
				do(w, i)
				if ended[i] = true; !decided && over() {
					decided = true
					for j, s := range scopes {
						s.dropped = !ended[j]
					}
					c.play.dropWaits()
				}
			}
			if working--; working == 0 {
				c.play.ready = append(c.play.ready, c.own)
			}
		})
	}
	c.own.pause()
	return base
}

// Dropped reports whether nobody waits for the branch any more.
func (c *Context) Dropped() bool { return c.scope.isDropped() }

// dropWaits ends the waits in dropped scopes, in the order of asking: who waits continues with
// [ErrDropped].
func (p *Play) dropWaits() {
	var gone []*waiting
	for _, w := range p.waits {
		if w.scope.isDropped() {
			gone = append(gone, w)
		}
	}
	slices.SortFunc(gone, func(a, b *waiting) int { return a.n - b.n })
	for _, w := range gone {
		delete(p.waits, w.ProviderID)
		p.dropped[w.ProviderID] = true
		p.ready = append(p.ready, w.strand)
	}
}

// Unknown returns those of a run's open steps for which this function has not asked, as one of
// another build may have. It forgets what was dropped and is not open.
func (p *Play) Unknown(open []string) (unknown []string) {
	dropped := map[string]bool{}
	for _, path := range open {
		switch {
		case p.dropped[path]:
			dropped[path] = true
		case p.waits[path] == nil:
			unknown = append(unknown, path)
		}
	}
	p.dropped = dropped
	return unknown
}

// checkEvery is how many results may come without a wait between two checks: a check takes half of
// the time that such a result does. A function that misuses its context does so at a step that has
// no result yet, and is found there.
const checkEvery = 16

// check fails the flow if the context is used by another goroutine than its branch's: then the
// order of results would not decide any more what happens. It ends that goroutine.
func (c *Context) check() {
	// One strand runs at a time. So a strand's goroutine in which the context's own strand runs is
	// the strand's. To ask for the goroutine's number would take ten times as long.
	if c.play.running.Load() == c.own && goroutineEntry() == c.own.entry {
		return
	}
	select {
	case c.play.misused <- agent.Errorf(agent.CodeFlowFailed, "a flow.Context is used outside of its branch: use the one that the branch's function gets, and flow.Map or flow.Parallel instead of a go statement; at\n%s", firstFrames(debug.Stack())):
	default: // it fails already
	}
	runtime.Goexit()
}

// Clean makes a name that a path can have.
func Clean(name string) string {
	if name == "" {
		return "step"
	}
	return strings.Map(func(r rune) rune {
		if r == '/' || r == '#' || r <= ' ' || r == 0x7f {
			return '_'
		}
		return r
	}, name)
}

// cleanScope makes a name of a scope. Its first dot ends it, where the key of an item begins: else
// a scope "a.1" would be the first item of a fan-out "a".
func cleanScope(name string) string { return strings.ReplaceAll(Clean(name), ".", "_") }

// Path returns the path of the scope; empty for the function itself.
func (c *Context) Path() string { return c.scope.path }
