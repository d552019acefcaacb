package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
)

// elsewhere is the same server with another task queue and another store.
func (s *stage) elsewhere() *stage {
	s.t.Helper()
	there, home := *s, s.t.TempDir()
	dir, err := store.OpenDir(home, nil)
	require.NoError(s.t, err)
	there.name += "-there"
	there.options.TaskQueue, there.options.Store = there.name, dir
	there.flags = append(s.flags[:2:2], "--task-queue", there.name, "--store", home, "--data", home)
	there.Client = fermata.New(s.temporal, &fermata.Options{TaskQueue: there.name, Store: dir})
	return &there
}

// atRest is a run that waits for its person, with a name for its export, at workers that have the keys of
// exports.
func atRest(t *testing.T, keys signals.Keys) (s *stage, run *fermata.Run, file string) {
	t.Helper()
	s = scripted(t, traveller())
	s.options.ExportKeys = keys
	run = s.works(pay()).begin("a", "traveller", nil)
	s.rests(run)
	return s, run, filepath.Join(t.TempDir(), "a.export")
}

// The command has the key, and the worker that verifies again has not.
func TestAWorkerWithoutTheKeyOfAnImport(t *testing.T) {
	s, run, file := atRest(t, nil)
	r := s.run("export", run.Session, "-o", file, "--move")
	require.Zero(t, r.exit, r.err)
	s.rests(run)
	s.elsewhere().works(pay()).fails(6, "this is what the worker says, which verifies again; see that it has the key that FERMATA_EXPORT_KEYS names", "import", file)
}

// A session moves: it ends where it was, and is answered where it is.
func TestExportAndImport(t *testing.T) {
	exports, err := env.ExportKeys.Required()
	require.NoError(t, err)
	s, run, file := atRest(t, exports)
	s.fails(2, "name the file to write with -o", "export", run.Session)
	s.fails(2, "can't be good for 1h0m0s and for ever", "export", run.Session, "-o", file, "--for", "1h", "--no-expiry")
	s.fails(6, "[not_found]", "export", s.session("nobody"), "-o", file)
	require.NoFileExists(t, file, "what failed leaves nothing")

	r := s.run("export", run.Session, "-o", "-")
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.err, "exported   "+run.Session+", agent traveller, suspended")
	require.NoError(t, os.WriteFile(file+"2", []byte(r.out), 0o600))
	s.fails(agent.CodeBusy.ExitStatus(), "[busy]", "import", file+"2") // it is whole: only that the session lives here hinders it
	require.NoError(t, os.Remove(file+"2"))
	var errs bytes.Buffer
	status := newCLI(strings.NewReader(""), full{}, &errs).execute(t.Context(), append([]string{"export", run.Session, "-o", "-"}, s.flags...))
	require.Equal(t, agent.CodeNotWritten.ExitStatus(), status)
	require.Contains(t, errs.String(), "[not_written] standard output can't be written")
	r = s.run("export", run.Session, "-o", file, "--for", "168h", "--move", "--json")
	require.Zero(t, r.exit, r.err)
	line := lastLine[exportLine](t, r.out)
	require.Equal(t, "q-1", line.Suspension.Requests[0].ID)
	require.Equal(t, 168*time.Hour, line.Expires.Sub(line.Created))
	require.True(t, line.Moved)
	o := s.rests(run)
	require.Equal(t, agent.StatusCancelled, o.Status)
	require.Equal(t, "exported", o.Reason)
	s.fails(2, "exists already", "export", run.Session, "-o", file)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&0o077, "it is for nobody else")
	names, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	require.Len(t, names, 1)

	there := s.elsewhere().works(pay())
	changed := filepath.Join(t.TempDir(), "changed")
	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	writeFile(t, changed, strings.Replace(string(whole), "travel", "revolt", 1))
	there.fails(6, "[bad_signature]", "import", changed)
	there.fails(2, "[invalid_input]", "import", changed+"-none")
	r = there.run("import", file)
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.out, "imported   "+run.Session+", agent traveller, suspended\nexport     "+line.Export+", signed with k1, of run "+run.ID+"\nwaits      s-1, input_required; open requests: q-1\n")
	there.fails(6, "[used]", "import", file)
	r = there.run("answer", run.Session, "train", "--request", "q-1")
	require.Zero(t, r.exit, r.err)
	moved, err := there.Get(t.Context(), run.Session)
	require.NoError(t, err)
	require.Equal(t, "q-2", there.rests(moved).Suspension.Requests[0].ID)
	_, err = moved.Cancel(t.Context(), "", nil)
	require.NoError(t, err)
}

// An import brings the answer with it, and the run goes on. A wrong flag or answer changes nothing
// (PA-17).
func TestImportWithAnAnswer(t *testing.T) {
	exports, err := env.ExportKeys.Required()
	require.NoError(t, err)
	s, run, file := atRest(t, exports)
	r := s.run("export", run.Session, "-o", file, "--move")
	require.Zero(t, r.exit, r.err)
	s.rests(run)

	there := s.elsewhere().works(pay())
	there.fails(2, "exclude each other", "import", file, "--request", "q-1", "--answer", "train", "--choice", "0")
	there.fails(2, "an answer is required", "import", file, "--request", "q-1")
	there.fails(2, "--request is required", "import", file, "--answer", "train")
	there.fails(2, "--result", "import", file, "--request", "q-1", "--result", "{")
	there.fails(2, "--answer is blank", "import", file, "--request", "q-1", "--answer", " ")
	there.fails(2, "choices", "import", file, "--request", "q-1", "--choice", "99")
	there.fails(6, "there is no request q-9; open are q-1", "import", file, "--request", "q-9", "--answer", "train")
	r = there.run("import", file, "--request", "q-1", "--answer", "train")
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.out, "answered   q-1\n")
	moved, err := there.Get(t.Context(), run.Session)
	require.NoError(t, err)
	require.Equal(t, "q-2", there.rests(moved).Suspension.Requests[0].ID, "the answer was taken, and the run asks the next")
	there.fails(6, "[used]", "import", file, "--request", "q-1", "--answer", "train")
	_, err = moved.Cancel(t.Context(), "", nil)
	require.NoError(t, err)
}

// A token that was handed out before the move is good for nothing after it: the session may
// be answered in both places. The request is the same, and takes a new one.
func TestTokensStayWhereTheyWereMinted(t *testing.T) {
	def := role{agent.Definition{Name: "payer", Tools: []string{"pay"}, Rules: []agent.Rule{{Do: agent.RulingAsk, Approvers: []string{"ana@acme.com"}}}},
		[]testsuite.Reply{calls("pay", map[string]any{"eur": 5}), {Text: "Paid."}}}
	s := scripted(t, def)
	exports, err := env.ExportKeys.Required()
	require.NoError(t, err)
	approvals, err := env.ApprovalKeys.Verifiers()
	require.NoError(t, err)
	s.options.ApprovalKeys, s.options.ExportKeys = approvals, exports
	s.works(pay())
	run := s.begin("a", "payer", nil)
	s.rests(run)
	r := s.run("token", "--session", run.Session, "--request", "q-1", "--principal", "ana@acme.com")
	require.Zero(t, r.exit, r.err)
	dir := t.TempDir()
	writeFile(t, dir+"/token", r.out)
	r = s.run("export", run.Session, "-o", dir+"/a.export", "--no-expiry", "--move")
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.out, "expires    never\nmoved      the session is cancelled here\n")
	s.rests(run)

	there := s.elsewhere().works(pay())
	r = there.run("import", dir+"/a.export")
	require.Zero(t, r.exit, r.err)
	there.fails(6, "[bad_signature]", "approve", run.Session, "--request", "q-1", "--token-file", dir+"/token")
	r = there.run("token", "--session", run.Session, "--request", "q-1", "--principal", "ana@acme.com")
	require.Zero(t, r.exit, r.err)
	writeFile(t, dir+"/token", r.out)
	r = there.run("approve", run.Session, "--request", "q-1", "--token-file", dir+"/token")
	require.Zero(t, r.exit, r.err)
	moved, err := there.Get(t.Context(), run.Session)
	require.NoError(t, err)
	require.Equal(t, agent.StatusCompleted, there.rests(moved).Status)
}
