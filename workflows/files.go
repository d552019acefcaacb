package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/internal/wire"
)

// parentSession returns the session of the workflow that has started this one; empty if none has, or one
// of another namespace, which may have a session of that name, too.
func parentSession(info *workflow.Info) string {
	if info.ParentWorkflowExecution == nil || !sameNamespace(info) {
		return ""
	}
	return info.ParentWorkflowExecution.ID
}

// sameNamespace reports whether a child is in its parent's namespace. A history does not name the run's
// own namespace, so a replayer replaces it.
func sameNamespace(info *workflow.Info) bool {
	return info.ParentWorkflowNamespace == info.Namespace || info.Namespace == "ReplayNamespace"
}

// takeFiles copies the files of the start that are the parent's into this run's session, once the run
// has claimed its head: so whatever becomes of the run, its deletion finds the copies. It returns the
// input, or nil if the input comes with the copies.
func (r *run) takeFiles(ctx workflow.Context, in loop.Opened) loop.Input {
	from, parts := r.state.FilesOfParent()
	if in.Err != nil || len(parts) == 0 {
		return in
	}
	r.copyFiles(ctx, activities.CopyFilesInput{From: from, To: r.state.Session, Parts: parts}, func(parts []agent.Part, err *agent.Error) loop.Input {
		in.Parts, in.Err = parts, err
		return in
	})
	return nil
}

// copyFiles copies files from one session into another.
func (r *run) copyFiles(ctx workflow.Context, in activities.CopyFilesInput, input func([]agent.Part, *agent.Error) loop.Input) {
	r.copyWith(ctx, in, readLogOptions(), input)
}

func (r *run) copyWith(ctx workflow.Context, in activities.CopyFilesInput, o workflow.ActivityOptions, input func([]agent.Part, *agent.Error) loop.Input) {
	start(ctx, r, activityCall[activities.CopyFilesInput, activities.CopiedFiles]{activity: activities.CopyFiles, in: in, options: o, lane: activities.StoreLane, countLostWorkers: o.ScheduleToCloseTimeout == 0}, func(o activities.CopiedFiles, err *agent.Error) loop.Input {
		return input(o.Parts, err)
	})
}

// How long an order waits for copies of its files: while no other order to the child waits behind it,
// and otherwise, all copies together. A store that is away must not keep a hold or a stop.
const (
	orderCopyTime = 30 * time.Second
	orderPatience = 2 * time.Second
)

// orderCopies are the copies for the orders to a child, one after another.
type orderCopies struct {
	until time.Time // when the patience ends; zero if no order has waited yet
	hurry func()    // called when an order waits; nil if no copy is in progress
}

// copyForOrder copies the files of an order into the session of a child that has begun, and then sends
// the order.
func (r *run) copyForOrder(ctx workflow.Context, session string, order *wire.ParentOrder, send func()) {
	if r.orderCopies[session] == nil {
		r.orderCopies[session] = &orderCopies{}
	}
	c, over := r.orderCopies[session], false
	ctx, cancel := workflow.WithCancel(ctx)
	end := func(parts []agent.Part, err *agent.Error) {
		if over {
			return
		}
		over, c.hurry = true, nil
		cancel()
		if order.Files = parts; err != nil {
			order.Files = loop.FilesNotCopied(err)
		}
		send()
	}
	giveUp := func() { end(nil, &agent.Error{Code: agent.CodeTimeout}) }
	c.hurry = func() {
		now := workflow.Now(ctx)
		if c.hurry = nil; c.until.IsZero() {
			c.until = now.Add(orderPatience)
		}
		if c.until.After(now) {
			r.later(ctx, c.until.Sub(now), giveUp)
		} else {
			giveUp()
		}
	}
	if len(r.outbox[session]) > 1 {
		c.hurry()
	}
	if over {
		return
	}
	o := minuteOptions()
	o.ScheduleToCloseTimeout = orderCopyTime
	r.copyWith(ctx, activities.CopyFilesInput{From: r.state.Session, To: session, Parts: order.Files}, o, func(parts []agent.Part, err *agent.Error) loop.Input {
		end(parts, err)
		return nil
	})
}

// childEnded returns the end of a child, or nil if it comes with copies of the files that the child
// gives back.
func (r *run) childEnded(ctx workflow.Context, session string, o *agent.Outcome) loop.Input {
	ended := loop.ChildEnded{Session: session, Outcome: o}
	switch {
	case len(o.Files) == 0, !r.state.TakesFilesOfChildren():
		return ended
	case r.copiesOf[session] != nil: // while the store is away, the child may be checked again
		return nil
	}
	in := activities.CopyFilesInput{From: session, To: r.state.Session}
	for _, f := range o.Files[:min(len(o.Files), agent.MaxFiles)] {
		in.Parts = append(in.Parts, agent.Part{Type: agent.PartFile, File: &f})
	}
	over := false
	ctx, cancel := workflow.WithCancel(ctx)
	end := func(files []agent.Part) loop.Input {
		delete(r.copiesOf, session)
		over, ended.Files = true, files
		return ended
	}
	r.copiesOf[session] = func() {
		cancel()
		r.immediate = append(r.immediate, end(nil))
	}
	r.copyFiles(ctx, in, func(parts []agent.Part, err *agent.Error) loop.Input {
		if over {
			return nil
		}
		if err != nil { // the result counts all the same
			parts = loop.FilesNotCopied(err)
		}
		return end(parts)
	})
	return nil
}

// giveUpCopies takes the ends of children whose files are still being copied: a run that stops or ends
// must not lose what they came to.
func (r *run) giveUpCopies() {
	for _, session := range workflow.DeterministicKeys(r.copiesOf) {
		r.copiesOf[session]()
	}
}
