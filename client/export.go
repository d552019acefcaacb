package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"go.temporal.io/api/enums/v1"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/internal/export"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
)

// ExportOptions configures an export. Key is required.
type ExportOptions struct {
	// Key signs the export. The workers that import it need its public key.
	Key signals.Signer
	// ValidFor is how long the export can be imported; zero means 24 hours.
	ValidFor time.Duration
	// NoExpiry makes the export valid for ever.
	NoExpiry bool
}

// lasts returns how long the export is valid; zero means for ever.
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

// ExportInfo describes an export. Expires is zero if it is valid for ever. Suspension is
// nil if the session's run has ended.
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

// Export writes a session as one signed file. If its run is suspended, the file has the
// open suspension too. The session itself stays as it is: whoever moves it calls
// [Client.CancelExported] once the file is safe. After an error the file is useless. The
// file holds the whole conversation and the arguments of open calls, unencrypted.
//
// Errors are [agent.CodeNotSetUp] without a key or a store, [agent.CodeInvalidInput] for
// a session below another one, and [agent.CodeNotFound]. [agent.CodeBusy] means that the
// run is neither suspended nor ended, or that runs below it are live. [agent.CodeStale]
// means that the last run was terminated, and its last events are not stored. Errors of
// the store and of queries are possible too.
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
	n, err := export.Write(w, content, o.Key, c.log.Copy(ctx, content.Sequence(), tail...))
	if err != nil {
		return ExportInfo{}, fmt.Errorf("exporting session %s: %w", session, err)
	}
	return exported(content, n), nil
}

// CancelExported cancels the exported run, with the reason "exported", so that the
// session lives in only one place. If the run has continued since the export, it stays as
// it is, and the error is [agent.CodeStale]. Other errors are those of [Run.Status] and
// [Run.Cancel]. If the exported run had ended, nothing happens.
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

// content returns what is exported of a session, and a chunk of the events that its run
// has not stored yet.
func (c *Client) content(ctx context.Context, session string) (content export.Content, tail []store.Packed, err error) {
	info, err := c.last(ctx, session)
	if err == nil {
		if err := keepsSession(info); err != nil {
			return content, nil, err
		}
	}
	switch {
	case err == nil && !durable.Closed(info):
		raw, err := signals.State.Ask(ctx, c.temporal, session, info.GetExecution().GetRunId(), signals.None{})
		if err != nil {
			return content, nil, fmt.Errorf("asking for its state: %w", err)
		}
		content, last, err := export.Live(raw, func(prev, session, run string, events []agent.Event) (store.Packed, error) {
			return c.log.Pack(ctx, prev, session, run, events)
		})
		if last != nil {
			tail = append(tail, *last)
		}
		return content, tail, err
	case err != nil && !errors.Is(err, agent.CodeNotFound): // Temporal may have forgotten the session
		return content, nil, err
	}
	head, err := c.log.Head(ctx, session)
	// Such a run could not store its end, so the store may lack its last events.
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
