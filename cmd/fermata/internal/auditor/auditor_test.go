package auditor_test

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/audit"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/auditor"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/observe"
)

// A model's call that suspends its run or manages its sub-agents is one entry: who calls, which
// tool, which sub-agents, and the number of the event that has the reason (HL-88). Other calls are
// not in the audit. The entry of an end says who stopped or cancelled the run.
func TestLifecycleCallsAreAudited(t *testing.T) {
	dir := t.TempDir()
	_, key, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	record, agents := filepath.Join(dir, "audit.jsonl"), filepath.Join(dir, "fermata.yaml")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	require.NoError(t, os.WriteFile(agents, []byte("agents:\n  lead: {model: script:s.yaml}\n"), 0o600))
	t.Setenv(env.Audit, record)
	t.Setenv(env.AuditKey+"_FILE", filepath.Join(dir, "key"))
	var of auditor.Record
	t.Cleanup(func() { require.NoError(t, of.Close()) })
	a, err := of.ForWorker(&agentsfile.File{Path: agents}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)

	seen := func(seq int64, c agent.CallUpdate) {
		require.NoError(t, a.Event(observe.RunEvent{Session: "s-1", Run: "r", Agent: "lead", Event: agent.Event{Seq: seq, Type: agent.EventCallRequested, Call: &c}}))
	}
	seen(4, agent.CallUpdate{Call: "t1.1", Tool: "subagent_pause", Lifecycle: &agent.LifecycleCall{
		Initiator: agent.InitiatorParent, By: "agent:s-1", Children: []string{"s-1/b-1", "s-1/b-2"}, Reason: "s3cret",
	}})
	seen(5, agent.CallUpdate{Call: "t1.2", Tool: "fs_read"})
	seen(6, agent.CallUpdate{Call: "t1.3", Tool: "await_resumption", Lifecycle: &agent.LifecycleCall{Initiator: agent.InitiatorSelf, By: "agent:s-1", Reason: "s3cret", Conditions: []string{"time"}}})
	require.NoError(t, a.Event(observe.RunEvent{Session: "s-1", Run: "r", Agent: "lead", Event: agent.Event{Seq: 9, Type: agent.EventRunStopped, Outcome: &agent.Outcome{By: "ana"}}}))

	text, err := os.ReadFile(record)
	require.NoError(t, err)
	require.NotContains(t, string(text), "s3cret")
	var got []audit.Entry
	for line := range strings.Lines(string(text)) {
		var e audit.Entry
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		if e.Kind == audit.KindEvent {
			got = append(got, audit.Entry{Event: e.Event, What: e.What, Session: e.Session, By: e.By, Children: e.Children, Tool: e.Tool, ID: e.ID, Seq: e.Seq})
		}
	}
	require.Equal(t, []audit.Entry{
		{Event: "call.requested", What: "parent", Session: "s-1", By: "agent:s-1", Children: "s-1/b-1,s-1/b-2", Tool: "subagent_pause", ID: "t1.1", Seq: 4},
		{Event: "call.requested", What: "self", Session: "s-1", By: "agent:s-1", Tool: "await_resumption", ID: "t1.3", Seq: 6},
		{Event: "run.stopped", Session: "s-1", By: "ana", Seq: 9},
	}, got)
}
