package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/testsuite"
)

// goesOn are the commands that go on until they are interrupted, and demo, which has a
// server of its own: each is a process in TestJSONOfProcesses.
var goesOn = []string{"demo", "dev", "worker", "codec", "callback"}

// everyCommand lists the commands that do something, and groups those that only have others below
// them, by their names behind fermata.
func everyCommand() []string { return commands(false) }
func groups() []string       { return commands(true) }

func commands(group bool) (names []string) {
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			if sub.HasSubCommands() == group {
				names = append(names, strings.TrimPrefix(sub.CommandPath(), "fermata "))
			}
			walk(sub)
		}
	}
	walk(newCLI(nil, nil, nil).root())
	return names
}

func TestEveryCommandHasJSON(t *testing.T) {
	root := newCLI(nil, nil, nil).root()
	for _, name := range everyCommand() {
		cmd, _, err := root.Find(strings.Fields(name))
		require.NoError(t, err)
		require.NotNil(t, cmd.Flag("json"), name)
	}
}

// polyglot is the traveller, who says more than ASCII has.
func polyglot() []role {
	who := traveller()
	who.says = append(who.says[:len(who.says)-1:len(who.says)-1], testsuite.Reply{Text: "Gute Reise nach Köln – bald…"})
	return []role{who, sleeper(), {
		agent.Definition{Name: "payer", Tools: []string{"pay"}, Rules: []agent.Rule{{Do: agent.RulingAsk, Approvers: []string{"zoë@acme.com"}}}},
		[]testsuite.Reply{calls("pay", map[string]any{"eur": 5}), {Text: "Paid."}},
	}}
}

// inASCII runs a command whose reader takes nothing but ASCII.
func (s *stage) inASCII(stdin string, args ...string) ran {
	var out, errs bytes.Buffer
	c := newCLI(strings.NewReader(stdin), &out, &errs)
	c.Out.ASCII, c.Err.ASCII = true, true
	code := c.execute(s.t.Context(), append(slices.Clone(args), s.flags...))
	return ran{code, out.String(), errs.String()}
}

// spoken is a command and the exit status that it is to have.
type spoken struct {
	name string
	exit int
	args []string
}

// tour says every command but those that go on, in an order in which each has something to
// tell. any is for those whose exit status depends on the machine.
func (s *stage) tour() []spoken {
	a, b, c, p := s.session("a"), s.session("b"), s.session("c"), s.session("p")
	dir, tick := s.t.TempDir(), s.session("tick")
	file, notes := filepath.Join(dir, "a.export"), filepath.Join(dir, "Notizen für Köln.md")
	suite, report := filepath.Join(dir, "suite.yaml"), filepath.Join(dir, "report.jsonl")
	writeFile(s.t, suite, "name: köln\n")
	writeFile(s.t, report, `{"type":"evaluation","id":"x","cases":[{"name":"zürich","passed":1,"failed":1}]}`+"\n")
	writeFile(s.t, notes, "# Köln")
	skills := filepath.Join(dir, "skills")
	require.NoError(s.t, os.MkdirAll(filepath.Join(skills, "reise"), 0o700))
	writeFile(s.t, filepath.Join(skills, "reise", "SKILL.md"), "---\nname: reise\ndescription: Plant Reisen nach Köln.\n---\nFrage zuerst, wohin →.\n")
	const whatever = -1
	first := agent.CheckpointID(a, 2)
	return []spoken{
		{"run", 3, []string{"traveller", "Nach Köln →", "--session", a, "--file", notes}}, {"wait", 3, []string{a}}, {"attach", 3, []string{a}}, {"show", 0, []string{a}},
		{"inbox", 0, []string{"--session", a}}, {"ls", 0, nil}, {"tree", 0, []string{a}}, {"events", 0, []string{a}}, {"transcript", 0, []string{a}},
		{"files", 0, []string{a}}, {"files", 0, []string{a, filepath.Base(notes), "-o", filepath.Join(dir, "Köln.md")}},
		{"artifacts", 0, []string{a}}, {"artifacts", 6, []string{a, "Köln.md", "-o", filepath.Join(dir, "Plan.md")}},
		{"notebook", 0, []string{a}},
		{"answer", 3, []string{a, "by train …", "--request", "q-1", "--wait"}}, {"approve", 3, []string{a, "--request", "q-2", "--wait"}},
		{"answer", 0, []string{a, "--request", "q-3", "--result", `{"seat":"12Ä"}`}}, {"wait", 3, []string{a}},
		{"reject", 3, []string{a, "--request", "q-4", "--reason", "zu früh", "--wait"}}, {"answer", 0, []string{a, "--request", "q-5", "--choice", "0", "--wait"}},
		{"answer", 2, []string{a, "many", "--request", "q-5", "--choice", "0"}}, {"show", 6, []string{s.session("nobody")}}, {"show", 2, []string{a, b, c}},
		{"runs", 0, []string{a}}, {"checkpoints", 0, []string{a}}, {"checkpoints", 0, []string{a, first}}, {"diff", 0, []string{a, "cp-0", first}},
		{"fork", 0, []string{a, first, "--plan"}}, {"fork", 3, []string{a, first, "--new", "--as", b, "--yes"}}, {"retry", 6, []string{a, "--plan"}},
		{"pause", 0, []string{b, "--reason", "früher"}}, {"resume", 3, []string{b, "--wait"}}, {"interrupt", 0, []string{b, "--wait"}}, {"resume", 0, []string{b}},
		{"send", 3, []string{b, "Grüße", "--wait"}}, {"send", 0, []string{b, "Grüße"}}, {"emit", 0, []string{s.session("topic")}},
		{"stop", 0, []string{b, "--reason", "später", "--wait"}}, {"handoff", 0, []string{b}}, {"cancel", 0, []string{b}},
		{"send", 0, []string{c, "hello →", "--agent", "sleeper", "--wait"}}, {"chat", 0, []string{"sleeper", "--session", c}},
		{"run", 3, []string{"payer", "Pay", "--session", p}}, {"token key", 0, []string{"k9"}}, {"token", 0, []string{"--session", p, "--request", "q-1", "--principal", "zoë@acme.com"}},
		{"export", 0, []string{p, "-o", file}}, {"import", whatever, []string{file}}, {"preflight", 0, nil},
		{"schedule create", 0, []string{tick, "--every", "1h", "--session", c, "--agent", "sleeper", "Grüße"}}, {"schedule ls", 0, nil}, {"schedule delete", 0, []string{tick}},
		{"memory ls", 0, []string{"--principal", "zoë"}}, {"memory show", 6, []string{"/memories/Köln.md", "--agent", "payer", "--principal", "zoë"}}, {"memory export", 0, []string{"--agent", "payer", "--principal", "zoë", "-o", filepath.Join(dir, "m.json")}},
		{"memory import", 0, []string{filepath.Join(dir, "m.json"), "--agent", "payer", "--principal", "zoë"}}, {"memory rm", 6, []string{"--principal", "zoë", "--yes"}},
		{"store gc", 0, []string{"--dry-run"}}, {"store check", 0, nil}, {"store rekey", whatever, nil}, {"delete", 0, []string{b, "--yes"}},
		{"eval run", 2, []string{suite}}, {"eval resume", 6, []string{s.session("none")}}, {"eval stop", 6, []string{s.session("none")}}, {"eval ls", 0, nil}, {"eval show", 6, []string{s.session("none")}},
		{"eval compare", 0, []string{report, report}}, {"eval add", whatever, []string{a, "--to", filepath.Join(dir, "new.yaml"), "--name", "one"}},
		{"setup", 0, nil}, {"setup", 0, []string{"--check"}}, {"doctor", whatever, nil}, {"lock", 2, nil}, {"skills ls", 0, []string{skills}}, {"skills show", 0, []string{"reise", skills}}, {"skills check", 0, []string{skills}}, {"schema", 0, nil}, {"roles ls", 0, nil}, {"roles show", 0, []string{"merger"}}, {"roles copy", 0, []string{"merger", "mine"}}, {"version", 0, nil}, {"codec key", 0, []string{"k1"}}, {"audit verify", 2, []string{file}},
	}
}

// walk says the whole tour with more flags, and looks at each output.
func (s *stage) walk(look func(spoken, ran), more ...string) {
	s.t.Helper()
	covered := slices.Clone(goesOn)
	for _, one := range s.tour() {
		covered = append(covered, one.name)
		r := s.inASCII("hello\n", slices.Concat(strings.Fields(one.name), more, one.args)...)
		if one.exit >= 0 {
			require.Equal(s.t, one.exit, r.exit, "%v: %s%s", one, r.out, r.err)
		}
		require.NotRegexp(s.t, `[^\x00-\x7f]`, r.out+r.err, "%v", one)
		look(one, r)
	}
	for _, name := range everyCommand() {
		require.Contains(s.t, covered, name, "no test says it")
	}
}

// objects checks that each line is one JSON object, and returns the last.
func objects(t *testing.T, out string) (last map[string]any) {
	t.Helper()
	for line := range strings.Lines(out) {
		last = nil
		require.NoError(t, json.Unmarshal([]byte(line), &last), line)
		require.NotNil(t, last, line)
	}
	return last
}

// With --json every command prints one object a line and nothing else, also when it fails.
func TestJSONOfEveryCommand(t *testing.T) {
	s := scripted(t, polyglot()...)
	keys, err := env.ApprovalKeys.Verifiers()
	require.NoError(t, err)
	exports, err := env.ExportKeys.Verifiers()
	require.NoError(t, err)
	s.options.ApprovalKeys, s.options.ExportKeys = keys, exports
	s.works(pay())
	s.walk(func(one spoken, r ran) {
		last := objects(t, r.out)
		if r.exit == 0 && !slices.Contains([]string{"ls", "inbox", "schedule ls", "artifacts", "eval ls", "memory ls"}, one.name) || r.exit == 3 {
			require.NotEmpty(t, last, "%v: %s", one, r.err)
		}
		if r.exit > 4 || r.exit == 2 {
			require.Equal(t, "error", last["type"], "%v: %s", one, r.out)
		}
	}, "--json")

	// Whether the flag stands before or behind what is wrong.
	for _, args := range [][]string{{"wait", "--json", "--bogus"}, {"wait", "--bogus", "--json"}} {
		r := inProcess(t, args...)
		require.Equal(t, []any{2, "error"}, []any{r.exit, objects(t, r.out)["type"]})
	}
}

// Who can read nothing but ASCII is shown nothing else, help included.
func TestASCIIOfEveryCommand(t *testing.T) {
	s := scripted(t, polyglot()...)
	keys, err := env.ApprovalKeys.Verifiers()
	require.NoError(t, err)
	exports, err := env.ExportKeys.Verifiers()
	require.NoError(t, err)
	s.options.ApprovalKeys, s.options.ExportKeys = keys, exports
	s.works(pay())
	s.walk(func(spoken, ran) {})
	for _, name := range append(everyCommand(), append(groups(), "")...) {
		r := s.inASCII("", append(strings.Fields(name), "--help")...)
		require.Zero(t, r.exit, name)
		require.NotEmpty(t, r.out, name)
		require.NotRegexp(t, `[^\x00-\x7f]`, r.out+r.err, name)
	}
}

// So do the commands that go on: they say when others can come.
func TestJSONOfProcesses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.env = append(b.env, env.Encryption+"=k1:"+strings.Repeat("A", 43)+"=")
	project(b)
	dev := b.start("dev", "--json")
	dev.until(`{"v":1,"type":"ready"`)
	worker := b.start("worker", "--agents", "fermata.yaml", "--json")
	worker.until(`{"v":1,"type":"ready"`)
	codec := b.start("codec", "--listen", freeAddress(t), "--json")
	codec.until(`{"v":1,"type":"ready"`)
	callback := b.start("callback", "--listen", freeAddress(t), "--allow-unauthenticated", "--json")
	callback.until(`{"v":1,"type":"ready"`)
	for _, p := range []*process{callback, codec, worker, dev} {
		r := p.end(syscall.SIGTERM)
		require.Zero(t, r.exit, r.err)
		require.Equal(t, "ready", objects(t, r.out)["type"])
	}
	r := b.run("demo", "--json")
	require.Zero(t, r.exit, r.err)
	require.Equal(t, "completed", objects(t, r.out)["status"])
}
