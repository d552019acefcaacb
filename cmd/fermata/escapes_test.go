package main

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a model's server says in an error, or a model in a text, steers no terminal.
func TestNothingSteersTheTerminal(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.write("fermata.yaml", "agents:\n  fails: {model: \"script:f.yaml\"}\n  asks: {model: \"script:s.yaml\", tools: [ask_user]}\n")
	b.write("f.yaml", "replies:\n  - {fail: [{kind: bad_request, message: \"no \\e]0;title\\a\\e[2J\\u009B31m\\u202Eevil\\u200F\"}]}\n")
	b.write("s.yaml", "replies:\n  - {text: \"first \\e[2J\\u061C\", calls: [{tool: ask_user, arguments: {question: \"Which \\e[31mone?\"}}]}\n")
	dev := b.start("dev", "--agents", "fermata.yaml")
	dev.until("ready")
	steers := "[\x00-\x08\x0b-\x1f\x7f\u0080-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
	for session, args := range map[string][]string{
		"f-1": {"run", "fails", "go", "--session", "f-1"},
		"s-1": {"run", "asks", "go", "--session", "s-1"},
	} {
		first := b.run(args...)
		require.Contains(t, []int{1, 3}, first.exit, first.err)
		all := first.out + first.err
		if session == "s-1" {
			b.run("stop", session)
		}
		for _, args := range [][]string{{"show"}, {"wait"}, {"events"}, {"transcript"}, {"handoff", "--md"}} {
			said := b.run(append(args, session)...)
			all += said.out + said.err
		}
		require.NotRegexp(t, steers, all, session)
		require.Contains(t, all, `\u001b[2J`, "what would steer shows")
	}
	log := dev.end(15).err
	require.Contains(t, log, "model call failed")
	require.NotRegexp(t, steers, log, "the worker's log")
}

// hostile is an agents file whose model says all that could deceive a reader: lines that look
// like ours, names and hosts that look like others, what can't be seen, and twice the same
// argument.
func hostile(b *bench) {
	b.write("fermata.yaml", `
agents:
  payer:
    model: script:payer.yaml
    tools: [fs_write, ask_user]
    rules: [{tools: [fs_write], do: ask}]
`)
	b.write("payer.yaml", `
replies:
  - text: "Fine.\n== user (eve)\n→ pay amount=1\nfermata: error [internal] none\nq-9 · approval · payer in s-9\napprove? y(es)\nrun completed\r\ncall p\u0430y\u200b"
    calls:
      - tool: fs_write
        arguments: {"path": "a.txt", "content": "https://bank.com:x@\u0430pple.com/\n\u202etxt\u2800\x9b31m"}
  - {text: "Done.\n[result t1.1, ok]\nq-9, approval: no"}
`)
}

// forged finds lines of a model that look like lines of ours.
var forged = regexp.MustCompile(`(?m)^\s*(== user \(eve\)|→ pay|fermata: error \[internal\] none|q-9|approve\? y|run completed|\[result t1\.1, ok\] *$|- s-9)`)

// unseen finds characters that steer a terminal, can't be seen, or look like ASCII.
var unseen = regexp.MustCompile("[\x00-\x08\x0b-\x1f\x7f\u0080-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\ufeff\u0430\u043e]")

// No command shows what a model wrote as anything else than that.
func TestNothingIsForged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	hostile(b)
	b.start("dev", "--agents", "fermata.yaml").until("ready")
	asked := b.run("run", "payer", "Pay\n== user (eve)\nq-9", "--session", "s-1")
	require.Equal(t, 3, asked.exit, asked.err)
	require.Contains(t, asked.out, "│ q-9 · approval · payer in s-9\n│ approve? y(es)\n│ run completed\n│ call p\\u0430y\\u200b\n")
	require.Contains(t, asked.out, `https://bank.com:x@xn--pple-43d.com/\n\u202etxt\u2800`)
	require.Contains(t, asked.out, "hosts: xn--pple-43d.com\n")
	require.Regexp(t, `fs_write · digest [0-9a-f]{16} of all arguments\n`, asked.out)
	clean := func(args []string, said ran) {
		t.Helper()
		require.NotEmpty(t, said.out+said.err, args)
		require.NotRegexp(t, unseen, said.out+said.err, args)
		require.NotRegexp(t, forged, said.out+said.err, args)
	}
	clean([]string{"run"}, asked)
	each := func(list ...[]string) {
		t.Helper()
		for _, args := range list {
			said := b.run(args...)
			clean(args, said)
		}
	}
	each([]string{"inbox"}, []string{"ls"}, []string{"show", "s-1"}, []string{"tree", "s-1"}, []string{"approve", "s-1"},
		[]string{"pause", "s-1", "--reason", "x\nq-9 \x1b[2J", "--by", "p\u0430yer\nq-9"}, []string{"show", "s-1"}, []string{"attach", "s-1"},
		[]string{"resume", "s-1"}, []string{"reject", "s-1", "--request", "q-1", "--reason", "no\nq-9 approved \u202e", "--by", "\u0430na"},
		[]string{"wait", "s-1"}, []string{"events", "s-1"}, []string{"transcript", "s-1"}, []string{"runs", "s-1"}, []string{"checkpoints", "s-1"},
		[]string{"checkpoints", "s-1", "cp-0"}, []string{"diff", "s-1", "cp-0", "cp-0"}, []string{"show", "s-1"}, []string{"ls"}, []string{"export", "s-1", "-o", "e"})
	for _, args := range [][]string{{"ls"}, {"show", "s-1"}, {"events", "s-1"}, {"transcript", "s-1"}} {
		said := b.run(append(args, "--json")...)
		require.NotRegexp(t, "[\x00-\x08\x0b-\x1f\x7f\u0080-\u009f\u200b\u202e]", said.out, args)
		for line := range strings.Lines(said.out) {
			require.True(t, json.Valid([]byte(line)), line)
		}
	}
}

// Text reaches a terminal by an outlet, and by no other way.
func TestOutputHasOneWay(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	inner, err := filepath.Glob("internal/*/*.go")
	require.NoError(t, err)
	for _, path := range append(files, inner...) {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			of, _ := s.X.(*ast.Ident)
			switch {
			case of == nil:
			case of.Name == "os" && (s.Sel.Name == "Stdout" || s.Sel.Name == "Stderr") && path != "main.go",
				of.Name == "fmt" && (s.Sel.Name == "Print" || s.Sel.Name == "Println" || s.Sel.Name == "Printf"),
				of.Name == "tabwriter" && path != "internal/render/table.go":
				t.Errorf("%s: %s.%s goes around the outlet: use Print, Note, Line or Table", fset.Position(s.Pos()), of.Name, s.Sel.Name)
			}
			return true
		})
	}
}
