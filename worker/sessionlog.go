package worker

import (
	"context"
	"log/slog"

	"go.temporal.io/sdk/activity"
)

// sessionHandler adds the session to what is logged with an activity's context, unless the line
// has it. Search then finds all lines of a run by one field.
type sessionHandler struct {
	slog.Handler
	has bool // the logger has the session already
}

const sessionKey = "session"

// Handle implements [slog.Handler].
func (h sessionHandler) Handle(ctx context.Context, r slog.Record) error {
	has := h.has
	r.Attrs(func(a slog.Attr) bool {
		has = has || a.Key == sessionKey
		return !has
	})
	if !has && activity.IsActivity(ctx) {
		r.AddAttrs(slog.String(sessionKey, activity.GetInfo(ctx).WorkflowExecution.ID))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (h sessionHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		h.has = h.has || a.Key == sessionKey
	}
	h.Handler = h.Handler.WithAttrs(attrs)
	return h
}

// WithGroup implements [slog.Handler].
func (h sessionHandler) WithGroup(name string) slog.Handler {
	h.Handler = h.Handler.WithGroup(name)
	return h
}
