package client

import (
	"cmp"
	"context"
	"iter"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// SuspendedRun is a suspended run with its suspension, as the run itself tells it.
type SuspendedRun struct {
	RunInfo
	// AgeMS is for how long the run has been suspended, in milliseconds.
	AgeMS int64 `json:"age_ms"`
	// Suspension has the reason, the initiator, the conditions and the requests.
	Suspension *agent.Suspension `json:"suspension,omitempty"`
	// Snapshot is the cursor of the last event before the wait: [Client.Events] and
	// [Client.Transcript] read what the run has done up to there.
	Snapshot string `json:"snapshot,omitempty"`
	// Error is why the run did not answer, for example without a worker. Then Suspension and Snapshot
	// are missing, and the others are from the listing.
	Error *agent.Error `json:"error,omitempty"`
}

// suspendedTimeout bounds the query to one run.
const suspendedTimeout = 3 * time.Second

// Suspended yields the suspended runs of a listing, the latest first, and asks each for its
// suspension. A run that has continued meanwhile is left out. After a run that no worker
// answers for, no further run of its agent is asked. The Status of the options has no meaning here.
// Errors are those of [Client.List].
func (c *Client) Suspended(ctx context.Context, o *ListOptions) iter.Seq2[SuspendedRun, error] {
	return func(yield func(SuspendedRun, error) bool) {
		only := *cmp.Or(o, &ListOptions{})
		only.Status = agent.StatusSuspended
		silent := map[string]*agent.Error{} // by agent
		for l, err := range c.List(ctx, &only) {
			if err != nil {
				yield(SuspendedRun{}, err)
				return
			}
			s := SuspendedRun{RunInfo: l, Error: silent[l.Agent]}
			if s.Error == nil {
				s.ask(ctx, c)
			}
			if s.Status != agent.StatusSuspended {
				continue
			}
			if s.Error != nil {
				silent[l.Agent] = s.Error
			}
			if s.AgeMS = time.Since(s.Since).Milliseconds(); !yield(s, nil) {
				return
			}
		}
	}
}

func (s *SuspendedRun) ask(ctx context.Context, c *Client) {
	ctx, cancel := context.WithTimeout(ctx, suspendedTimeout)
	defer cancel()
	st, err := (&Run{client: c, Session: s.Session, ID: s.Run}).Status(ctx)
	if err != nil {
		s.Error = agent.Errorf(agent.CodeOf(err), "%w", err)
		return
	}
	s.Status, s.Reason, s.Since, s.Turn, s.Cost = st.Status, st.Reason, st.Since, st.Turn, st.Cost
	if s.Suspension = st.Suspension; s.Suspension != nil {
		s.Reason, s.Snapshot = s.Suspension.Reason, agent.Cursor(st.Seq)
	}
}
