package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/audit"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/render"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
	"github.com/fermata-agents/fermata/observe"
)

// maxKeyFile bounds a file with a key in PEM, in bytes.
const maxKeyFile = 16 << 10

// record is the audit that this process adds to; nil if none is named.
func (c *cli) record() (*audit.Writer, error) {
	if c.audit != nil {
		return c.audit, nil
	}
	path, key, err := env.AuditPlace()
	if path == "" || err != nil {
		return nil, err
	}
	c.audit, err = audit.Open(path, key, version())
	return c.audit, err
}

// auditRemedy is what to do about an audit that can't be written.
const auditRemedy = "let the worker's user write the file, its lock and its folder, or name another file in " + env.Audit

// recordKey records that a key is about to be used. A use that can't be recorded is refused.
func (c *cli) recordKey(e audit.Entry) error {
	w, err := c.record()
	if w == nil || err != nil {
		return err
	}
	e.Kind, e.By = audit.KindKey, whoami()
	return w.Append(e)
}

// auditOf is what a worker for an agents file records with, nil for no audit. It begins with
// what agents the worker has: their names, and the digest of the file with their rules.
func (c *cli) auditOf(f *agentsfile.File) (observe.Auditor, error) {
	w, err := c.record()
	if w == nil || err != nil {
		return nil, err
	}
	text, err := os.ReadFile(f.Path)
	if err != nil {
		return nil, agent.Errorf(agent.CodeInvalidInput, "the agents file can't be read: %w", err)
	}
	sum := sha256.Sum256(text)
	var names []string
	for _, def := range f.Agents {
		names = append(names, def.Name)
	}
	return &auditor{w: w, log: c.Log.Slog()}, w.Append(audit.Entry{Kind: audit.KindPolicy, What: filepath.Base(f.Path), Agent: strings.Join(names, ","), Digest: hex.EncodeToString(sum[:])})
}

// auditor records what runs are told, and what becomes of what they ask.
type auditor struct {
	w   *audit.Writer
	log *slog.Logger

	mu  sync.Mutex
	bad bool // the last entry was not written
}

// add adds an entry. It logs when entries can't be written any more, and when they can again:
// meanwhile every verb is refused, and each run is tried again and again.
func (a *auditor) add(e audit.Entry) error {
	err := a.w.Append(e)
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err != nil && !a.bad:
		a.log.Error("the audit can't be written: verbs are refused, and runs wait", "error", err, "todo", auditRemedy)
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
	_ = json.Unmarshal(t.Data, &said) // what can't be read is refused
	e := audit.Entry{
		Kind: audit.KindVerb, What: string(t.Verb), Session: t.Session, Run: t.Run, Agent: t.Agent, ID: said.ID, By: said.By,
		Request: said.Request, Digest: said.Digest, Principal: strings.Join(t.Principals, ","), Outcome: "accepted",
	}
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
	case agent.EventToolsChanged:
		if r := at.ToolsChange; r != nil {
			e.What, e.Tool = r.Source, strings.Join(r.Left, ",")
		}
	case agent.EventRunCompleted, agent.EventRunFailed, agent.EventRunCancelled, agent.EventRunStopped:
		if at.Outcome != nil && at.Outcome.Error != nil {
			e.Code = at.Outcome.Error.Code
		}
	case agent.EventHoldAdded, agent.EventHoldRemoved:
		if at.Hold != nil {
			e.What, e.By = string(at.Hold.Verb), at.Hold.By
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
	case agent.EventRequestAnswered, agent.EventRequestExpired, agent.EventRequestForwarded:
		if at.Answer != nil {
			e.Request, e.Outcome, e.By, e.Principal = at.Answer.Request, at.Answer.Decision, at.Answer.By, at.Answer.Approver
		}
	case agent.EventCallApproved, agent.EventCallRejected:
		if at.Call != nil {
			e.Tool, e.ID = at.Call.Tool, at.Call.Call
		}
	case agent.EventVerbRefused:
		if r := at.Refusal; r != nil && r.Error != nil {
			e.What, e.Code = r.Verb, r.Error.Code
		}
	default:
		return nil
	}
	return a.add(e)
}

func (c *cli) auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Prove the record of who did what",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(c.auditVerifyCommand())
	return cmd
}

func (c *cli) auditVerifyCommand() *cobra.Command {
	var publicKey string
	var heads []string
	cmd := &cobra.Command{
		Use:   "verify FILE",
		Short: "Prove an audit whole",
		Long: `Verify reads an audit to its end and checks that each entry is signed, and that none
is missing, changed, doubled or moved. It asks nobody and needs the public key alone.

It prints the audit's head. Keep that where the workers can't write: with --head a
later audit is proved to begin with the same entries, and not to be cut off. Without
one, a cut shows where a process has begun and not ended, and has not written for
20 minutes: the exit status is 1 then. Of processes that wrote nothing behind the
last --head this is not said.`,
		Example: `  fermata audit verify audit.jsonl --public-key audit.pub
  fermata audit verify audit.jsonl --public-key audit.pub --json | jq -r .head`,
		Args: wants(1, "the audit's file"),
		RunE: func(_ *cobra.Command, args []string) error { return c.verifyAudit(args[0], publicKey, heads) },
	}
	cmd.Flags().StringVar(&publicKey, "public-key", "", "file with the public key (openssl pkey -in audit.key -pubout)")
	cmd.Flags().StringArrayVar(&heads, "head", nil, "a head that was kept, N:SHA256, which must be in it")
	c.jsonFlag(cmd, "print what was found as one line of JSON")
	return cmd
}

// auditLine is the output of audit verify --json.
type auditLine struct {
	V       int       `json:"v"`
	Entries int64     `json:"entries"`
	Head    string    `json:"head"`
	Begun   time.Time `json:"begun"`
	Last    time.Time `json:"last"`
	Open    int       `json:"open"`
	// Silent means that a process is open which has not written for too long, since Quiet.
	Silent bool      `json:"silent"`
	Quiet  time.Time `json:"quiet,omitzero"`
}

func (c *cli) verifyAudit(path, publicKey string, heads []string) error {
	if publicKey == "" {
		return agent.Errorf(agent.CodeInvalidInput, "--public-key is wanted: the file that openssl pkey -in audit.key -pubout has made")
	}
	text, err := readFile(publicKey, maxKeyFile)
	if err != nil {
		return agent.Errorf(agent.CodeInvalidInput, "the public key can't be read: %w", err)
	}
	key, err := audit.PublicKey(text)
	if err != nil {
		return agent.Errorf(agent.CodeInvalidInput, "the public key in %s: %w", publicKey, err)
	}
	var kept []audit.Head
	for _, one := range heads {
		h, err := audit.ParseHead(one)
		if err != nil {
			return err
		}
		kept = append(kept, h)
	}
	f, err := os.Open(path)
	if err != nil {
		return agent.Errorf(agent.CodeInvalidInput, "the audit can't be read: %w", err)
	}
	defer f.Close()
	r, err := audit.Verify(f, key, kept...)
	if err != nil {
		return err
	}
	found := auditLine{agent.Version, r.Entries, r.Head.String(), r.Begun, r.Last, r.Open, !r.Quiet.IsZero() && time.Since(r.Quiet) > 2*audit.AliveInterval, r.Quiet}
	if c.JSON {
		c.Line(found)
	} else {
		c.tellAudit(found)
	}
	if found.Silent {
		return ended(1)
	}
	return nil
}

func (c *cli) tellAudit(l auditLine) {
	t := c.Table()
	t.Field("whole", "%s", render.Count(int(l.Entries), "line"))
	if l.Entries > 0 {
		t.Field("from", "%s", render.Clock(l.Begun))
		t.Field("to", "%s", render.Clock(l.Last))
		t.Field("head", "%s", untrusted.Name(l.Head))
	}
	t.Field("open", "%s", render.Count(l.Open, "writer"))
	t.Flush()
	if l.Silent {
		c.Note("a process began and has written nothing since %s: it was killed, or what it wrote then was cut off; the head of today, given with --head, says that you have looked", render.Clock(l.Quiet))
	}
}
