package callback

import (
	"context"
	"errors"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// kindWithin is how long a run has to say whether it is a daemon's. A run that has ended needs a worker
// for that, and a deploy may have just taken the last one.
const kindWithin = 3 * time.Second

// atEnd says whether it helps to send a callback again that an ended run has refused. Other refusals
// stay as they are. A daemon's next run takes an event, with the same id. If nobody can say that the
// run is no daemon's, it helps too: a sender that tries in vain costs less than a lost event.
func (h *Handler) atEnd(ctx context.Context, to Address, err error) error {
	var e *agent.Error
	if !errors.As(err, &e) || e.Code != agent.CodeClosed {
		return err
	}
	ended := *e
	if to.Run == "" && to.Request == "" && h.mayBeDaemon(ctx, to.Session) {
		ended.Message = "the run has ended; the session's next run may take the event. Send it again, with the same id"
		ended.Retryable = true
		return &ended
	}
	ended.Message = "the run has ended, so this callback comes too late"
	return &ended
}

// mayBeDaemon reports whether a session's run is a daemon's, as far as a worker answers.
func (h *Handler) mayBeDaemon(ctx context.Context, session string) bool {
	ctx, cancel := context.WithTimeout(ctx, kindWithin)
	defer cancel()
	run, err := h.client.GetOwn(ctx, session)
	if err != nil {
		return true
	}
	s, err := run.Status(ctx)
	return err != nil || s.QueuedEvents != nil
}
