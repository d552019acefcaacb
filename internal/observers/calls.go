package observers

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/observe"
	"github.com/fermata-agents/fermata/tool"
)

// Tool tells the observers of calls that an attempt at a tool call begins. over tells them
// that it has ended. A panic in either is logged.
func (s *Set) Tool(ctx context.Context, call *tool.Call, trace agent.Trace) (_ context.Context, over func(agent.CallStatus)) {
	if s == nil || len(s.calls) == 0 {
		return ctx, func(agent.CallStatus) {}
	}
	var overs []func(agent.CallStatus)
	for _, c := range s.calls {
		within, over := s.begin(ctx, c, call, trace)
		ctx, overs = within, append(overs, over) //nolint:fatcontext // as middlewares nest: one level for each observer
	}
	return ctx, func(status agent.CallStatus) {
		for i, over := range slices.Backward(overs) {
			s.end(s.calls[i], over, status)
		}
	}
}

// begin calls an observer's Tool.
func (s *Set) begin(ctx context.Context, c observe.CallObserver, call *tool.Call, trace agent.Trace) (within context.Context, over func(agent.CallStatus)) {
	defer func() {
		if p := recover(); p != nil {
			s.panicked(c, p)
		}
		if within == nil {
			within = ctx
		}
	}()
	return c.Tool(ctx, call, trace)
}

// end calls what an observer's Tool returned; nil if that panicked.
func (s *Set) end(c observe.CallObserver, over func(agent.CallStatus), status agent.CallStatus) {
	if over == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			s.panicked(c, p)
		}
	}()
	over(status)
}

func (s *Set) panicked(c observe.CallObserver, p any) {
	s.log.Error("an observer panicked at a call", "observer", fmt.Sprintf("%T", c), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
}

// Model puts the observers of calls around a model; the first is outermost.
func (s *Set) Model(next model.Model) model.Model {
	if s == nil {
		return next
	}
	for _, c := range slices.Backward(s.calls) {
		next = s.around(c, next)
	}
	return next
}

// around puts one observer around a model.
func (s *Set) around(c observe.CallObserver, next model.Model) (m model.Model) {
	defer func() {
		if p := recover(); p != nil {
			s.panicked(c, p)
			m = next
		}
	}()
	observed := c.Model(noted{next})
	if observed == nil {
		return next
	}
	return guarded{Model: next, observed: observed, by: c, of: s}
}

// guarded is a model with an observer around it. A panic of the observer does not end the
// call.
type guarded struct {
	model.Model
	observed model.Model
	by       observe.CallObserver
	of       *Set
}

// callKey is the context key of a *modelCall.
type callKey struct{}

// modelCall is how far a call has got within the observer.
type modelCall struct {
	began, ended bool
	reply        *model.Reply
	err          error
}

// Generate implements [model.Model].
func (m guarded) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (reply *model.Reply, err error) {
	var made modelCall
	defer func() {
		p := recover()
		switch {
		case p == nil:
			return
		case made.began && !made.ended:
			panic(p) // it is the model's own
		}
		m.of.panicked(m.by, p)
		if reply, err = made.reply, made.err; !made.began {
			reply, err = m.Model.Generate(ctx, req, emit)
		}
	}()
	return m.observed.Generate(context.WithValue(ctx, callKey{}, &made), req, emit)
}

// noted is the model within an observer. It notes how far the call has got.
type noted struct{ model.Model }

// Generate implements [model.Model].
func (m noted) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
	made, ok := ctx.Value(callKey{}).(*modelCall)
	if !ok {
		return m.Model.Generate(ctx, req, emit)
	}
	made.began, made.ended = true, false
	made.reply, made.err = m.Model.Generate(ctx, req, emit)
	made.ended = true
	return made.reply, made.err
}
