package flow

import (
	"fmt"
	"strconv"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/play"
	"github.com/fermata-agents/fermata/internal/wire"
)

// Need says when a fan-out has what it needs. A positive number n means n successes: the first n
// of them end the fan-out, and so does the failure after which too few are left.
type Need int

// The other needs.
const (
	// All is the zero value: every item must succeed. The first failure drops the others and is
	// the fan-out's error.
	All Need = 0
	// Collect needs nothing: every item comes to its end, and each has its own error.
	Collect Need = -1
)

// MapOptions say how a fan-out goes. Nil has the defaults.
type MapOptions struct {
	// Width is how many items are in progress at once; zero means 128, the most steps that a run
	// may have open.
	Width int
	// Need says when the fan-out has what it needs.
	Need Need
	// Key names the item at an index, so that it keeps its steps where the list has changed. Nil
	// means its place in the list, from 1. No two items may have the same key, where blanks, "/"
	// and "#" count as "_".
	Key func(i int) string
}

// Item is what came of one item: a value, or why there is none. Err is [ErrDropped] if the others
// decided before it had ended.
type Item[Out any] struct {
	Out Out
	Err error
}

// Map calls a function for each item, in branches that go on independently, and returns what came
// of them in the items' order. The steps of an item have the scope NAME.KEY. The error says that
// the fan-out has not got what MapOptions.Need asks for: it is the first failure with [All], and
// [agent.CodeJoinFailed] with a number.
func Map[In, Out any](c Context, name string, items []In, do func(Context, In) (Out, error), o *MapOptions) ([]Item[Out], error) {
	if o == nil {
		o = &MapOptions{}
	}
	if c.c == nil {
		return nil, errOutside
	}
	keys, err := keysOf(len(items), o.Key)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	out := make([]Item[Out], len(items))
	for i := range out {
		out[i].Err = ErrDropped
	}
	t := tally{need: o.Need, items: len(items)}
	width := o.Width
	if width <= 0 || width > wire.MaxSteps { // a branch without an open step would only take memory
		width = wire.MaxSteps
	}
	path := c.c.Fan(name, keys, width, func(w *play.Context, i int) {
		v, err := do(Context{w}, items[i])
		if w.Dropped() && err != nil {
			return
		}
		out[i] = Item[Out]{v, err}
		t.count(keys[i], err)
	}, t.over)
	return out, t.err(name, path)
}

func keysOf(n int, key func(int) string) ([]string, error) {
	keys, seen := make([]string, n), map[string]bool{}
	for i := range keys {
		if keys[i] = strconv.Itoa(i + 1); key != nil {
			keys[i] = key(i)
		}
		// As a path has it: "a/b" is "a_b" there, and two items with one path would be one.
		if seen[play.Clean(keys[i])] {
			return nil, agent.Errorf(agent.CodeFlowFailed, "two items have the key %q", play.Clean(keys[i]))
		}
		seen[play.Clean(keys[i])] = true
	}
	return keys, nil
}

// tally counts how the items of a fan-out end.
type tally struct {
	need      Need
	items     int
	good, bad int
	first     error // the first failure
}

func (t *tally) count(key string, err error) {
	if err == nil {
		t.good++
		return
	}
	if t.bad++; t.first == nil {
		t.first = fmt.Errorf("%s: %w", key, err)
	}
}

// over reports whether the items that have ended decide the fan-out.
func (t *tally) over() bool {
	switch {
	case t.need == All:
		return t.bad > 0
	case t.need > 0:
		return t.good >= int(t.need) || t.items-t.bad < int(t.need)
	}
	return false
}

// err returns why the fan-out has not what it needs. If every item has to succeed, that is the failure
// of the one that did not. path is the fan-out's.
func (t *tally) err(name, path string) error {
	switch {
	case t.need == All && t.first != nil:
		return fmt.Errorf("%s.%w", name, t.first)
	case t.need > 0 && t.good < int(t.need) && t.first != nil:
		e := agent.Errorf(agent.CodeJoinFailed, "%s: %d of %d have succeeded, and %d are needed; the first failure: %w", name, t.good, t.items, t.need, t.first).WithPath(path)
		e.Cause = causeOf(t.first)
		return e
	case t.need > 0 && t.good < int(t.need):
		return agent.Errorf(agent.CodeJoinFailed, "%s: there are %d items, and %d successes are needed", name, t.items, t.need).WithPath(path)
	}
	return nil
}

// Values returns the values of the items that have succeeded, in order.
func Values[Out any](items []Item[Out]) (out []Out) {
	for _, i := range items {
		if i.Err == nil {
			out = append(out, i.Out)
		}
	}
	return out
}

// Branch is one of several things that [Parallel] does at once. Name is the scope of its steps.
type Branch struct {
	Name string
	Do   func(Context) error
}

// Parallel runs several branches at once. The first failure drops the others and is the error.
// Branches have no result: they set variables of the function, and since one branch runs at a
// time, they need no lock.
func Parallel(c Context, branches ...Branch) error {
	_, err := Map(c, "branch", branches, func(c Context, b Branch) (struct{}, error) { return struct{}{}, b.Do(c) },
		&MapOptions{Key: func(i int) string { return branches[i].Name }})
	return err
}
