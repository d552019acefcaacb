package main

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/audit"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
)

// audited gives a machine an audit, and returns its path and that of the public key.
func audited(b *bench) (record, public string) {
	b.t.Helper()
	open, key, err := ed25519.GenerateKey(nil)
	require.NoError(b.t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(b.t, err)
	text, err := x509.MarshalPKIXPublicKey(open)
	require.NoError(b.t, err)
	record, public = filepath.Join(b.tmp, "audit", "audit.jsonl"), filepath.Join(b.tmp, "audit.pub")
	require.NoError(b.t, os.WriteFile(filepath.Join(b.tmp, "audit.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	require.NoError(b.t, os.WriteFile(public, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: text}), 0o600))
	b.env = append(b.env, env.Audit+"="+record, env.AuditKey+"_FILE="+filepath.Join(b.tmp, "audit.key"))
	for _, p := range []env.KeyPair{env.ApprovalKeys, env.ExportKeys} {
		b.env = append(b.env, p.Public+"="+os.Getenv(p.Public), p.Private+"="+os.Getenv(p.Private))
	}
	return record, public
}

// entries are what an audit has, without what tells of processes.
func entries(t *testing.T, record string) (list []audit.Entry) {
	t.Helper()
	text, err := os.ReadFile(record)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		var e audit.Entry
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		if e.Kind != audit.KindOpened && e.Kind != audit.KindClosed && e.Kind != audit.KindAlive {
			list = append(list, e)
		}
	}
	return list
}

// Every verb, approval, refusal and use of a key is in the audit, by whom, and whether it took
// effect; a worker that is killed leaves it whole, and what is done to the file shows.
func TestAudit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	record, public := audited(b)
	b.write("fermata.yaml", "agents:\n  payer: {model: \"script:s.yaml\", tools: [fs_write], rules: [{tools: [fs_write], do: ask, approvers: [ana]}]}\n")
	b.write("s.yaml", "replies:\n  - {calls: [{tool: fs_write, arguments: {path: a.txt, content: s3cret}}]}\n  - {text: Done.}\n")
	dev := b.start("dev", "--agents", "fermata.yaml")
	dev.until("ready")
	require.Equal(t, 3, b.run("run", "payer", "Pay", "--session", "s-1").exit)
	require.Zero(t, b.run("pause", "s-1", "--by", "bob", "--reason", "the bank").exit)
	require.Zero(t, b.run("resume", "s-1", "--by", "bob").exit)
	require.NotZero(t, b.run("approve", "s-1", "--request", "q-1", "--by", "eve").exit, "without a token")
	token := b.run("token", "--session", "s-1", "--request", "q-1", "--principal", "ana")
	require.Zero(t, token.exit, token.err)
	b.write("token", token.out)
	approved := b.run("approve", "s-1", "--request", "q-1", "--by", "carl", "--token-file", "token", "--wait")
	require.Zero(t, approved.exit, approved.err)
	require.Zero(t, b.run("export", "s-1", "-o", filepath.Join(b.tmp, "e")).exit)

	has := func(want audit.Entry) {
		t.Helper()
		for _, e := range entries(t, record) {
			e.V, e.N, e.Time, e.Prev, e.Sig, e.Process, e.ID, e.Run, e.Seq = 0, 0, want.Time, "", "", "", "", "", 0
			if want.Digest == "" {
				e.Digest = ""
			}
			if e == want {
				return
			}
		}
		text, _ := os.ReadFile(record)
		t.Errorf("no entry %+v in\n%s", want, text)
	}
	has(audit.Entry{Kind: audit.KindPolicy, What: "fermata.yaml", Agent: "payer"})
	has(audit.Entry{Kind: audit.KindEvent, Event: "run.started", Session: "s-1", Agent: "payer"})
	has(audit.Entry{Kind: audit.KindEvent, Event: "request.opened", Session: "s-1", Agent: "payer", What: "approval", Request: "q-1", Tool: "fs_write", Principal: "ana"})
	has(audit.Entry{Kind: audit.KindVerb, What: "pause", Session: "s-1", Agent: "payer", By: "bob", Outcome: "accepted"})
	has(audit.Entry{Kind: audit.KindVerb, What: "resume", Session: "s-1", Agent: "payer", By: "bob", Outcome: "accepted"})
	for _, e := range entries(t, record) {
		if e.By == "eve" {
			require.Equal(t, []string{"approve", "q-1", "refused"}, []string{e.What, e.Request, e.Outcome})
			require.NotEmpty(t, e.Code)
		}
	}
	has(audit.Entry{Kind: audit.KindKey, What: "token", Session: "s-1", Request: "q-1", Principal: "ana", Key: "k1"})
	has(audit.Entry{Kind: audit.KindEvent, Event: "request.answered", Session: "s-1", Agent: "payer", Request: "q-1", Outcome: "approve", By: "carl", Principal: "ana"})
	has(audit.Entry{Kind: audit.KindEvent, Event: "run.completed", Session: "s-1", Agent: "payer"})
	has(audit.Entry{Kind: audit.KindKey, What: "export", Session: "s-1"})
	text, err := os.ReadFile(record)
	require.NoError(t, err)
	for _, secret := range []string{"s3cret", strings.TrimSpace(token.out), "the bank"} {
		require.NotContains(t, string(text), secret)
	}

	verified := b.run("audit", "verify", record, "--public-key", public, "--json")
	require.Zero(t, verified.exit, verified.err)
	found := lastLine[auditLine](t, verified.out)
	require.Equal(t, 1, found.Open, "the worker's own")
	require.NoError(t, dev.cmd.Process.Signal(syscall.SIGKILL))
	_ = dev.cmd.Wait()
	again := b.run("audit", "verify", record, "--public-key", public, "--head", found.Head)
	require.Zero(t, again.exit, again.err)
	require.Contains(t, again.out, "open   1 writer")

	lines := strings.SplitAfter(string(text), "\n")
	for name, changed := range map[string]string{
		"missing": strings.Join(lines[:3], "") + strings.Join(lines[4:], ""),
		"changed": strings.Replace(string(text), `"by":"bob"`, `"by":"ana"`, 1),
		"cut":     strings.Join(lines[:5], ""),
	} {
		b.write("changed", changed)
		r := b.run("audit", "verify", "changed", "--public-key", public, "--head", found.Head)
		require.Equal(t, agent.CodeBadSignature.ExitStatus(), r.exit, "%s: %s", name, r.out+r.err)
	}
}

// Where an audit is wanted and can't be had, no worker starts, and no key is used.
func TestAnAuditThatCantBeWritten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.write("fermata.yaml", "agents:\n  reader: {model: \"script:s.yaml\"}\n")
	b.write("s.yaml", "replies:\n  - {text: Done.}\n")
	b.write("notes.txt", "")
	record, _ := audited(b)
	for _, env := range [][]string{{env.Audit + "="}, {env.AuditKey + "_FILE="}, {env.AuditKey + "_FILE=" + b.tmp + "/none"}, {env.Audit + "=" + b.dir + "/notes.txt/x"}} {
		other := *b
		other.env = append(append([]string{}, b.env...), env...)
		r := other.run("run", "reader", "Go")
		require.Contains(t, []int{agent.CodeNotSetUp.ExitStatus(), agent.CodeNotWritten.ExitStatus()}, r.exit, r.err)
		require.Contains(t, r.err, "audit")
		require.NotContains(t, r.out, "reader ·")
	}
	require.NoFileExists(t, record)
}

// A verb that can't be recorded is refused.
func TestAVerbThatCantBeRecorded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	record, _ := audited(b)
	b.write("fermata.yaml", "agents:\n  asks: {model: \"script:s.yaml\", tools: [ask_user]}\n")
	b.write("s.yaml", "replies:\n  - {calls: [{tool: ask_user, arguments: {question: \"How?\"}}]}\n  - {text: Done.}\n")
	dev := b.start("dev", "--agents", "fermata.yaml")
	dev.until("ready")
	require.Equal(t, 3, b.run("run", "asks", "Go", "--session", "s-1").exit)
	// Nothing can be added to a folder.
	require.NoError(t, os.Rename(record, record+".1"))
	require.NoError(t, os.Mkdir(record, 0o700))
	for range 2 {
		r := b.run("answer", "s-1", "So", "--request", "q-1")
		require.Equal(t, agent.CodeNotWritten.ExitStatus(), r.exit, r.err)
		require.Contains(t, r.err, "answer refused: the audit in ")
	}
	require.NoError(t, os.Remove(record))
	require.NoError(t, os.Rename(record+".1", record))
	require.Zero(t, b.run("answer", "s-1", "So", "--request", "q-1", "--wait").exit)
	log := dev.end(syscall.SIGTERM).err
	require.Equal(t, 1, strings.Count(log, "error the audit can't be written"), log)
	require.Equal(t, 1, strings.Count(log, "warn the audit is written again"), log)
}

// No tool touches the audit, its lock or its key, from the first start on.
func TestTheAuditIsTheWorkersOwn(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "key"), nil, 0o600))
	t.Setenv(env.Audit, filepath.Join(dir, "audit.jsonl"))
	t.Setenv(env.AuditKey+"_FILE", filepath.Join(dir, "key"))
	list, err := newCLI(nil, nil, nil).host.Private()
	require.NoError(t, err)
	for _, name := range []string{"audit.jsonl", "audit.jsonl.lock", "key"} {
		require.Contains(t, list, filepath.Join(dir, name))
	}
}
