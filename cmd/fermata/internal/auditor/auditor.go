package auditor

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/audit"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/version"
	"github.com/fermata-agents/fermata/observe"
)

// Record adds to the audit that the environment names. The zero value opens it at the
// first entry.
type Record struct{ w *audit.Writer }

// open returns the audit; nil if none is named.
func (a *Record) open() (*audit.Writer, error) {
	if a.w != nil {
		return a.w, nil
	}
	path, key, err := env.AuditPlace()
	if path == "" || err != nil {
		return nil, err
	}
	a.w, err = audit.Open(path, key, version.Program())
	return a.w, err
}

// Close closes this process's part of the audit, if it has one.
func (a *Record) Close() error {
	if a.w == nil {
		return nil
	}
	return a.w.Close()
}

// Key records that a key is about to be used. If that fails, the key must not be used.
func (a *Record) Key(e audit.Entry) error {
	w, err := a.open()
	if w == nil || err != nil {
		return err
	}
	e.Kind, e.By = audit.KindKey, env.User()
	return w.Append(e)
}

// ForWorker returns what a worker for an agents file records with; nil without an audit.
// The first entry has the names of the worker's agents and the digest of the file with
// their rules.
func (a *Record) ForWorker(f *agentsfile.File, log *slog.Logger) (observe.Auditor, error) {
	w, err := a.open()
	if w == nil || err != nil {
		return nil, err
	}
	// Read again for the digest: the parsed file has lost its exact text.
	text, err := os.ReadFile(f.Path)
	if err != nil {
		return nil, agent.Errorf(agent.CodeInvalidInput, "the agents file can't be read: %w", err)
	}
	sum := sha256.Sum256(text)
	var names []string
	for _, def := range f.Definitions() {
		names = append(names, def.Name)
	}
	return &auditor{w: w, log: log}, w.Append(audit.Entry{Kind: audit.KindPolicy, What: filepath.Base(f.Path), Agent: strings.Join(names, ","), Digest: hex.EncodeToString(sum[:])})
}

// auditor records the commands that runs get, and what happens to their requests.
type auditor struct {
	w   *audit.Writer
	log *slog.Logger

	mu  sync.Mutex
	bad bool // the last entry could not be written
}

// add adds an entry. It logs when entries can't be written any more, and when they can
// again. Meanwhile every verb is refused, and each run is tried again and again.
func (a *auditor) add(e audit.Entry) error {
	// Outside of the lock: the writer has its own.
	err := a.w.Append(e)
	a.mu.Lock()
	defer a.mu.Unlock()
	// Logged once for each change: every run that waits would log it otherwise.
	switch {
	case err != nil && !a.bad:
		a.log.Error("the audit can't be written: verbs are refused, and runs wait", "error", err, "todo", AuditRemedy)
	case err == nil && a.bad:
		a.log.Warn("the audit is written again")
	}
	a.bad = err != nil
	return err
}

// Command implements [observe.Auditor].
func (a *auditor) Command(t observe.RunCommand) error {
	var said struct {
		ID, By, Request, Digest string
		Answers                 []struct{ Request string }
	}
	_ = json.Unmarshal(t.Data, &said) // a command that can't be read is refused anyway
	e := audit.Entry{
		Kind: audit.KindVerb, What: string(t.Verb), Session: t.Session, Run: t.Run, Agent: t.Agent, ID: said.ID, By: said.By,
		Request: said.Request, Digest: said.Digest, Principal: strings.Join(t.Principals, ","), Outcome: "accepted",
	}
	// A resume may answer several requests; the entry lists them all.
	for i, one := range said.Answers {
		if i > 0 {
			e.Request += ","
		}
		e.Request += one.Request
	}
	if e.ID == "" {
		e.ID = t.ID
	}
	switch {
	case t.Refused != nil:
		e.Outcome, e.Code = "refused", agent.CodeOf(t.Refused)
	case t.Signal:
		e.Outcome = "signalled"
	}
	return a.add(e)
}

// Event implements [observe.Auditor].
func (a *auditor) Event(s observe.RunEvent) error {
	e := audit.Entry{Kind: audit.KindEvent, Event: string(s.Event.Type), Session: s.Session, Run: s.Run, Agent: s.Agent, Seq: s.Event.Seq}
	switch at := s.Event; at.Type {
	case agent.EventRunStarted, agent.EventForked, agent.EventLimitExtended:
		e.Outcome = string(at.Extended)
	case agent.EventToolsChanged, agent.EventInstructionsChanged, agent.EventInstructionsKept:
		setChange(&e, at)
	case agent.EventRunCompleted, agent.EventRunFailed, agent.EventRunCancelled, agent.EventRunStopped:
		if o := at.Outcome; o != nil {
			if e.By = o.By; o.Error != nil {
				e.Code = o.Error.Code
			}
		}
	case agent.EventHoldAdded:
		if at.Hold != nil {
			e.What, e.By = string(at.Hold.Verb), at.Hold.By
		}
	case agent.EventHoldRemoved:
		if at.Hold != nil {
			e.What, e.By = string(at.Hold.Verb), at.Hold.RemovedBy
		}
	case agent.EventRunResumed:
		if at.Resumed != nil {
			e.Outcome, e.By = string(at.Resumed.Cause), at.Resumed.By
		}
	case agent.EventRequestOpened:
		if q := at.Request; q != nil {
			e.Request, e.What, e.Digest, e.Principal = q.ID, string(q.Type), q.Digest, strings.Join(q.Approvers, ",")
			if q.Call != nil {
				e.Tool = q.Call.Tool
			}
		}
	case agent.EventRequestAnswered, agent.EventRequestAnsweredLate, agent.EventRequestExpired, agent.EventRequestForwarded:
		if at.Answer != nil {
			e.Request, e.Outcome, e.By, e.Principal = at.Answer.Request, at.Answer.Decision, at.Answer.By, at.Answer.Approver
			if at.Answer.AlwaysInSession {
				e.Outcome += " always_in_session"
			}
		}
	case agent.EventCallRequested:
		if at.Call == nil || at.Call.Lifecycle == nil {
			return nil
		}
		l := at.Call.Lifecycle
		e.What, e.By, e.Children, e.Tool, e.ID = string(l.Initiator), l.By, strings.Join(l.Children, ","), at.Call.Tool, at.Call.Call
	case agent.EventCallApproved, agent.EventCallRejected:
		if at.Call != nil {
			e.Tool, e.ID = at.Call.Tool, at.Call.Call
		}
	case agent.EventVerbRefused:
		if r := at.Refusal; r != nil && r.Error != nil {
			e.What, e.By, e.Code = r.Verb, r.By, r.Error.Code
		}
	// Other events change nothing that the audit is about.
	default:
		return nil
	}
	return a.add(e)
}

// setChange sets what an event says of a change of what the run's agent is made of.
func setChange(e *audit.Entry, at agent.Event) {
	if r := at.ToolsChange; r != nil {
		e.What, e.Tool = r.Source, strings.Join(r.Left, ",")
	}
	if c := at.Instructions; c != nil {
		if e.What, e.By = c.Digest, c.By; c.Error != nil {
			e.Code = c.Error.Code
		}
	}
}

// AuditRemedy says what to do about an audit that can't be written.
const AuditRemedy = "let the worker's user write the file, its lock and its folder, or name another file in " + env.Audit
