package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"go.temporal.io/api/enums/v1"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/export"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
)

// ExportOptions says how a session is exported. Key is required.
type ExportOptions struct {
	// Key signs. The workers where the session shall live need its public key.
	Key signals.Signer
	// ValidFor is how long the export can be imported; zero means 24 hours.
	ValidFor time.Duration
	// NoExpiry lets it be imported forever.
	NoExpiry bool
}

// lasts is how long the export is good; zero means forever.
func (o *ExportOptions) lasts() (time.Duration, error) {
	switch {
	case o.Key.ID() == "":
		return 0, agent.Errorf(agent.CodeNotSetUp, "export refused: there is no key to sign with; there is none by default")
	case o.ValidFor < 0:
		return 0, agent.Errorf(agent.CodeInvalidInput, "export refused: the time for which it is good must be positive").WithPath("for")
	case o.NoExpiry && o.ValidFor > 0:
		return 0, agent.Errorf(agent.CodeInvalidInput, "export refused: it can't be good for %s and for ever", o.ValidFor).WithPath("for")
	case o.NoExpiry:
		return 0, nil
	case o.ValidFor == 0:
		return 24 * time.Hour, nil
	}
	return o.ValidFor, nil
}

// ExportInfo says what a file has. Expires is zero where it is good forever, and
// Suspension nil where the session is at an end.
type ExportInfo struct {
	Export     string            `json:"export"` // its id
	Key        string            `json:"key"`
	Session    string            `json:"session"`
	Run        string            `json:"run"`
	Agent      string            `json:"agent"`
	Status     agent.Status      `json:"status"`
	Suspension *agent.Suspension `json:"suspension,omitempty"`
	Created    time.Time         `json:"created"`
	Expires    time.Time         `json:"expires,omitzero"`
	Seq        int64             `json:"seq"` // of the log's last event
	Chunks     int               `json:"chunks"`
}

func exported(c export.Content, chunks int) ExportInfo {
	return ExportInfo{
		Export: c.ID, Key: c.Key, Session: c.Session, Run: c.Run, Agent: c.Agent, Status: c.Head.Status,
		Suspension: c.Suspension, Created: c.Created, Expires: c.Expires, Seq: c.Head.Seq, Chunks: chunks,
	}
}

// Export writes a session as one signed file, with its open suspension where its
// run is suspended, and changes nothing: whoever moves the session cancels it here
// once the file is safe. A file that was written in part, beside an error, is good
// for nothing. It holds all that was said, and the arguments of open calls, in the
// clear.
//
// Errors are [agent.CodeNotSetUp] without a key or a store, [agent.CodeInvalidInput] for a
// session below another one, [agent.CodeNotFound], [agent.CodeBusy] for a run that is neither suspended nor at its end
// or has live runs below it, [agent.CodeStale] where the last run was ended from
// outside and is not stored to its end, and those of the store and of a query.
func (c *Client) Export(ctx context.Context, session string, w io.Writer, o *ExportOptions) (ExportInfo, error) {
	o = cmp.Or(o, &ExportOptions{})
	lasts, err := o.lasts()
	if err != nil {
		return ExportInfo{}, err
	}
	if c.log == nil {
		return ExportInfo{}, agent.Errorf(agent.CodeNotSetUp, "exporting a session: %w", ErrNoStore)
	}
	content, tail, err := c.content(ctx, session)
	if err != nil {
		return ExportInfo{}, fmt.Errorf("exporting session %s: %w", session, err)
	}
	content = content.Stamp(o.Key.ID(), time.Now(), lasts)
	n, err := export.Write(w, content, o.Key, c.chain(ctx, content.Head.Digest, tail))
	if err != nil {
		return ExportInfo{}, fmt.Errorf("exporting session %s: %w", session, err)
	}
	return exported(content, n), nil
}

// CancelExported ends, with the reason "exported", the run that an export was made of, so
// that it lives nowhere twice. Where it has gone on since the export it is left as
// it is, and the error is [agent.CodeStale]; the others are those of [Run.Status] and
// [Run.Cancel]. A session that was at its end stays so.
func (c *Client) CancelExported(ctx context.Context, e ExportInfo) error {
	if e.Status.Ended() {
		return nil
	}
	run, err := c.Get(ctx, e.Session)
	if err != nil {
		return err
	}
	s, err := run.Status(ctx)
	if err != nil {
		return err
	}
	if run.ID != e.Run || s.Status != agent.StatusSuspended || s.Seq != e.Seq {
		return agent.Errorf(agent.CodeStale, "session %s has gone on since it was exported, and was not ended: throw the file away, and export it again", e.Session)
	}
	_, err = run.Cancel(ctx, agent.ReasonExported, nil)
	return err
}

// content is what is to be exported of a session, and the chunk of what its run has
// not stored.
func (c *Client) content(ctx context.Context, session string) (content export.Content, tail *store.Packed, err error) {
	info, err := c.last(ctx, session)
	switch {
	case err == nil && !durable.Closed(info):
		raw, err := signals.State.Ask(ctx, c.temporal, session, info.GetExecution().GetRunId(), signals.None{})
		if err != nil {
			return content, nil, fmt.Errorf("asking for its state: %w", err)
		}
		return export.Live(raw, func(prev, session, run string, events []agent.Event) (store.Packed, error) {
			return c.log.Pack(ctx, prev, session, run, events)
		})
	case err != nil && !errors.Is(err, agent.CodeNotFound): // which Temporal may have forgotten
		return content, nil, err
	}
	head, err := c.log.Head(ctx, session)
	cut := info.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_TERMINATED || info.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_TIMED_OUT
	if err == nil && (!head.Status.Ended() || cut && info.GetFirstRunId() != head.Run) {
		err = agent.Errorf(agent.CodeStale, "run %s was ended from outside, and its last events are not stored: the session's next run stores them", head.Run)
	}
	if err != nil {
		return content, nil, err
	}
	inbox, err := c.log.Backlog(ctx, head)
	return export.Rest(head, inbox), nil, err
}

// chain lists the chunks from the last to the first. What is not stored yet comes
// before them.
func (c *Client) chain(ctx context.Context, digest string, tail *store.Packed) iter.Seq2[store.Packed, error] {
	return func(yield func(store.Packed, error) bool) {
		if tail != nil {
			prev, err := store.Unpack(tail.Digest, tail.Data)
			if !yield(*tail, err) || err != nil {
				return
			}
			digest = prev
		}
		c.log.Chain(ctx, digest)(yield)
	}
}
