package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.yaml.in/yaml/v4"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// Every command of docs/temporal-cli.md does what the page says, with the real
// temporal command on a real server (HX-90, HX-93). Comments before a block say what
// it needs and what comes of it:
//
//	needs: a run trip-42 of planner: Plan a trip    begins one, instead of a live one
//	needs: TOKEN of ana@acme.com for trip-42 q-1    makes one, in the environment
//	when:  trip-42 asks q-1                         waits before the block, see [page.holds]
//	then:  trip-42 is suspended                     waits after it
//	fails: stale                                    the exit status is not 0, and that is told
//	prints: "effect": "accepted"                    that is told
func TestTemporalDoc(t *testing.T) {
	plain(t)
	temporalCommand(t)
	blocks := docBlocks(t, "../docs/temporal-cli.md")
	all := ""
	for _, b := range blocks {
		all += b.text
	}
	for _, verb := range signals.Verbs {
		require.Regexp(t, `update execute -w \S+ --name `+string(verb)+`\b`, all)
		require.Regexp(t, `workflow signal -w \S+ --name `+string(verb)+`\b`, all)
	}
	for _, query := range []string{"status", "suspension", "transcript", "tree", "state"} {
		require.Contains(t, all, "--type "+query)
	}
	p := &page{stage: travelAgency(t), home: t.TempDir()}
	t.Cleanup(func() { p.clear(t) })
	for _, b := range blocks {
		if !t.Run(fmt.Sprintf("line %d", b.line), func(t *testing.T) { p.play(t, b) }) {
			return // the others rest on it
		}
	}
}

// page is the page with what its commands run against.
type page struct {
	*stage
	home  string
	token string
	env   []string // beside its own
	swaps []string // texts in the commands, each with the one that is run
}

// clear ends what the page leaves live: its sessions have names that anybody may use.
func (p *page) clear(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	for l, err := range p.List(ctx, &client.ListOptions{Query: "TaskQueue = '" + p.queue + "' AND ExecutionStatus = 'Running'"}) {
		require.NoError(t, err)
		require.NoError(t, p.temporal.TerminateWorkflow(ctx, l.Session, "", "the page is done"))
	}
}

// docBlock is a block of commands, with what is said of it in comments before.
type docBlock struct {
	line  int
	text  string
	notes []docNote
}

type docNote struct{ kind, what string }

var noteForm = regexp.MustCompile(`^<!-- (needs|when|then|fails|prints): (.+) -->$`)

// docBlocks reads the blocks of a page that are meant to be run.
func docBlocks(t *testing.T, path string) (blocks []docBlock) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	var notes []docNote
	var open *docBlock
	for i, line := range strings.Split(string(data), "\n") {
		note := noteForm.FindStringSubmatch(line)
		switch {
		case open != nil && line == "```":
			blocks, open = append(blocks, *open), nil
		case open != nil:
			open.text += line + "\n"
		case line == "```sh":
			open, notes = &docBlock{line: i + 2, notes: notes}, nil
		case note != nil:
			notes = append(notes, docNote{note[1], note[2]})
		default:
			require.NotContains(t, line, "<!--", "line %d: a comment of another form", i+1)
			require.Empty(t, notes, "line %d: a comment stands right before its block", i+1)
		}
	}
	require.Nil(t, open)
	return blocks
}

func (p *page) play(t *testing.T, b docBlock) {
	var fails bool
	var wants []string
	for _, n := range b.notes {
		switch n.kind {
		case "needs":
			p.prepare(t, n.what)
		case "when":
			p.await(t, n.what)
		case "fails":
			fails, wants = true, append(wants, n.what)
		case "prints":
			wants = append(wants, n.what)
		}
	}
	out, err := p.sh(t, b.text)
	t.Logf("%s%s", b.text, out)
	require.Equal(t, fails, err != nil, "%v\n%s%s", err, b.text, out)
	for _, want := range wants {
		require.Contains(t, out, want, b.text)
	}
	for _, n := range b.notes {
		if n.kind == "then" {
			p.await(t, n.what)
		}
	}
}

// sh runs a block as a person would, except for the queue and the server.
func (p *page) sh(t *testing.T, text string) (out string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-euc", strings.NewReplacer(append(p.swaps, "--task-queue fermata", "--task-queue "+p.queue)...).Replace(text))
	cmd.Dir = p.home
	cmd.Env = append(os.Environ(), append(p.env, "HOME="+p.home, "TEMPORAL_ADDRESS="+p.addr, "TOKEN="+p.token)...)
	raw, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(raw), err
}

var (
	needsRun   = regexp.MustCompile(`^a run (\S+) of (\w+): (.+)$`)
	needsToken = regexp.MustCompile(`^TOKEN of (\S+) for (\S+) (\S+)$`)
)

// prepare makes what a block needs.
func (p *page) prepare(t *testing.T, what string) {
	t.Helper()
	if m := needsToken.FindStringSubmatch(what); m != nil {
		claim, err := p.TokenClaim(t.Context(), m[2], agent.VerbApprove, m[3], m[1])
		require.NoError(t, err)
		claim.Expires = time.Now().Add(time.Hour)
		p.token, err = docSigner.Mint(claim)
		require.NoError(t, err)
		return
	}
	m := needsRun.FindStringSubmatch(what)
	require.NotNil(t, m, "%q is nothing that can be prepared", what)
	if run, err := p.Get(t.Context(), m[1]); err == nil {
		_, err := run.Cancel(t.Context(), "", nil)
		require.NoError(t, err)
		_, err = run.Result(t.Context())
		require.NoError(t, err)
	}
	run, err := p.Start(t.Context(), m[2], m[3], &client.StartOptions{Session: m[1]})
	require.NoError(t, err)
	p.until(t, run, agent.EventRunStarted)
}

// await waits until a session is as a comment says.
func (p *page) await(t *testing.T, what string) {
	t.Helper()
	f := strings.Fields(what)
	require.Len(t, f, 3, "%q is nothing that can be waited for", what)
	var status agent.RunStatus
	first := -1 // the turn of the first look
	defer func() {
		if t.Failed() {
			t.Logf("%s: %+v", what, status)
		}
	}()
	require.Eventually(t, func() bool {
		run, err := p.Get(t.Context(), f[0])
		if err != nil {
			return false
		}
		if agent.Status(f[2]).Ended() {
			out, err := run.Result(t.Context())
			return err == nil && out.Status == agent.Status(f[2])
		}
		if status, err = run.Status(t.Context()); err != nil {
			return false
		}
		if first < 0 {
			first = status.Turn
		}
		return p.holds(t, status, first, f[1]+" "+f[2])
	}, patience, 20*time.Millisecond, what)
}

// holds reports whether a run is as a comment says: is STATUS, is held, goes on (it
// has made turns since), asks REQUEST, refused VERB.
func (p *page) holds(t *testing.T, s agent.RunStatus, first int, how string) bool {
	t.Helper()
	open := agent.Suspension{}
	if s.Suspension != nil {
		open = *s.Suspension
	}
	switch verb, what, _ := strings.Cut(how, " "); {
	case how == "is held":
		return len(open.Holds) > 0
	case how == "goes on":
		return s.Status == agent.StatusRunning && s.Turn >= first+2
	case verb == "is" && agent.Status(what).Known():
		return s.Status == agent.Status(what)
	case verb == "asks":
		return s.Status == agent.StatusSuspended && slices.ContainsFunc(open.Requests, func(r agent.Request) bool { return r.ID == what })
	case verb == "refused":
		return slices.ContainsFunc(s.Refused, func(r agent.RefusedVerb) bool { return r.Verb == what })
	}
	t.Fatalf("%q is nothing that a run can be", how)
	return false
}

// docSigner proves the page's approver.
var docSigner = newSigner("k1")

func newSigner(id string) signals.Signer {
	s, err := signals.NewSigner(id)
	if err != nil {
		panic(err)
	}
	return s
}

// travelAgency is a stage with the agents of the page.
func travelAgency(t *testing.T) *stage {
	t.Helper()
	s := setup(t, agent.Definition{}, testsuite.NewScript())
	s.queue += "-doc"
	s.Client = client.New(s.temporal, &client.Options{TaskQueue: s.queue, Store: s.dir})
	w, err := worker.New(s.temporal, &worker.Options{
		TaskQueue: s.queue, Store: s.dir, Logger: zap.NewNop(), Temporal: stopsSoon, ApprovalKeys: docSigner.Keys(),
		Agents: docAgents(), Tools: docTools(), Models: docModels(),
	})
	require.NoError(t, err)
	require.NoError(t, w.Start(t.Context()))
	t.Cleanup(w.Stop)
	return s
}

func docAgents() []agent.Definition {
	ask := func(name string) agent.Rule { return agent.Rule{Do: agent.RulingAsk, Tools: []string{name}} }
	refund, transfer := ask("refund"), ask("transfer")
	refund.Confirm, transfer.Approvers = agent.ConfirmDigest, []string{"ana@acme.com"}
	return []agent.Definition{
		{
			Name: "planner", Model: "planner", Tools: []string{"look", agent.AskUserTool, agent.AwaitResumptionTool}, Limits: agent.Limits{Turns: 10_000},
			ClientTools: []agent.ToolSpec{{Name: "camera", Description: "takes a photograph"}},
		},
		{Name: "payer", Model: "payer", Tools: []string{"pay", "refund", "transfer"}, Rules: []agent.Rule{ask("pay"), refund, transfer}},
		{Name: "lead", Model: "lead", Agents: []agent.SubAgent{{Agent: "scout"}}},
		{Name: "scout", Model: "scout", Tools: []string{agent.AskUserTool}},
		{Name: "asker", Model: "asker", Tools: []string{agent.AskUserTool}},
	}
}

func docTools() (tools []tool.Tool) {
	type payment struct {
		Amount int `json:"amount_eur"`
	}
	for _, name := range []string{"pay", "refund", "transfer"} {
		tools = append(tools, tool.New(name, "moves money", func(_ context.Context, _ *tool.Call, in payment) (string, error) {
			return fmt.Sprintf("%s: %d EUR", name, in.Amount), nil
		}, nil))
	}
	type thing struct {
		For string `json:"for"`
	}
	return append(tools, tool.New("look", "looks for something", func(_ context.Context, _ *tool.Call, in thing) (string, error) { return in.For, nil }, &tool.Options{Local: true}))
}

func docModels() map[string]model.Model {
	const soon = 100 * time.Millisecond
	summary := testsuite.Reply{Match: "You are being stopped", Text: `{"summary":"Two hotels found, nothing is booked.","confidence":0.8}`}
	question := func(text string, choices ...any) []testsuite.Call {
		return call(agent.AskUserTool, map[string]any{"question": text, "choices": choices})
	}
	eur := func(n int) map[string]any { return map[string]any{"amount_eur": n} }
	return map[string]model.Model{
		"planner": testsuite.NewScript(summary,
			testsuite.Reply{Match: "^Sum up this conversation", Text: "A trip for two to hotels near trains."},
			testsuite.Reply{Match: `^Ask me where`, Calls: question("Where to?")},
			testsuite.Reply{Match: `^Rome$|The input: "Rome"$`, Calls: question("How?", "by train", "by plane")},
			testsuite.Reply{Match: `^by train$|The input: "by train"$`, Calls: call("camera", map[string]any{"what": "the passport"})},
			testsuite.Reply{Match: `The event orders.paid came`, Text: "The order is on its way."},
			testsuite.Reply{Match: `^hotels$`, Delay: soon, Calls: call("look", map[string]any{"for": "trains"})},
			testsuite.Reply{Match: `(?s).*`, Delay: soon, Calls: call("look", map[string]any{"for": "hotels"})}),
		"payer": testsuite.NewScript(
			testsuite.Reply{Calls: call("pay", eur(118))},
			testsuite.Reply{Calls: call("pay", eur(119))},
			testsuite.Reply{Calls: call("pay", eur(1200))},
			testsuite.Reply{Calls: call("refund", eur(800))},
			testsuite.Reply{Calls: call("pay", eur(121))},
			testsuite.Reply{Calls: append(call("pay", eur(122)), call("pay", eur(123))...)},
			testsuite.Reply{Calls: call("pay", eur(124))},
			testsuite.Reply{Calls: call("pay", eur(125))},
			testsuite.Reply{Calls: call("transfer", eur(126))},
			testsuite.Reply{Text: "All is paid."}),
		"lead": testsuite.NewScript(summary,
			testsuite.Reply{Match: "^Compare", Calls: call("subagent__scout", map[string]any{"task": "Find hotels"})}, testsuite.Reply{Match: ".*", Text: "Done."}),
		"scout": testsuite.NewScript(summary,
			testsuite.Reply{Match: "Find hotels", Calls: question("How many stars?")}, testsuite.Reply{Match: ".*", Text: "Two hotels."}),
		"asker": testsuite.NewScript(
			testsuite.Reply{Calls: question("What is your name?")}, testsuite.Reply{Text: "Hello."}),
	}
}

// Any language can speak to a run: a process that knows only gRPC and JSON starts
// one, hears its question, answers it and reads the result.
func TestTemporalDocRawClient(t *testing.T) {
	plain(t)
	file, err := parser.ParseFile(token.NewFileSet(), "rawclient/main.go", nil, parser.ImportsOnly)
	require.NoError(t, err)
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		require.NoError(t, err)
		host, _, _ := strings.Cut(path, "/")
		raw := !strings.Contains(host, ".") || strings.HasPrefix(path, "go.temporal.io/api/") || strings.HasPrefix(path, "google.golang.org/grpc")
		require.True(t, raw, "rawclient imports %s", path)
	}
	s := travelAgency(t)
	program := filepath.Join(t.TempDir(), "rawclient")
	built, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./rawclient").CombinedOutput()
	require.NoError(t, err, "%s", built)
	session := "raw-" + s.queue
	cmd := exec.CommandContext(t.Context(), program, s.addr, s.queue, session, "I am ana")
	var told bytes.Buffer
	cmd.Stderr = &told
	raw, err := cmd.Output()
	require.NoError(t, err, "%s", told.Bytes())
	var got struct {
		Question string
		Ack      agent.Ack
		Outcome  agent.Outcome
	}
	require.NoError(t, json.Unmarshal(raw, &got), "%s", raw)
	require.Equal(t, "q-1", got.Question)
	require.Equal(t, agent.EffectAccepted, got.Ack.Effect)
	require.Equal(t, agent.StatusRunning, got.Ack.Status)
	require.Equal(t, agent.StatusCompleted, got.Outcome.Status)
	require.Equal(t, "Hello.", got.Outcome.Text)
	messages, err := s.Transcript(t.Context(), session)
	require.NoError(t, err)
	require.Equal(t, "I am ana", messages[2].Parts[0].Result.Text)
}

// What docs/holding.md shows is what the code reads; its first table goes from the
// narrowest way to the widest, with an example of each (HL-114, HX-93).
func TestHoldingDoc(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../docs/holding.md")
	require.NoError(t, err)
	_, table, _ := strings.Cut(string(data), "\n## Which verb to use\n")
	table, _, _ = strings.Cut(table, "\n## ")
	rows := regexp.MustCompile(`(?m)^\| (\w[^|]+)\|([^|]+)\| (\w|"|`+"`"+`)[^|]+\|$`).FindAllStringSubmatch(table, -1)[1:] // without the head
	for i, use := range []string{
		"`completion: tool`", "`on_limit: ask`", "`" + agent.AwaitResumptionTool + "` with conditions", "without conditions", "`" + agent.AskUserTool + "`", "`" + agent.WaitForUserTool + "`",
		"`subagent_pause`", "`" + string(agent.VerbPause) + "`", "`" + string(agent.VerbStop) + "`", "`background: true`", "`" + string(agent.VerbCancel) + "`",
	} {
		require.Contains(t, rows[i][2], use)
	}
	found := map[string]int{}
	for _, m := range regexp.MustCompile("(?ms)^```(json|yaml)\n(.*?)^```$").FindAllStringSubmatch(string(data), -1) {
		found[m[1]]++
		if m[1] == "json" {
			_, err := signals.DecodeConditions([]byte(m[2]))
			require.NoError(t, err, m[2])
			continue
		}
		var tree any
		require.NoError(t, yaml.Unmarshal([]byte(m[2]), &tree))
		raw, err := json.Marshal(tree)
		require.NoError(t, err)
		var file struct {
			Agents map[string]agent.Definition
			Policy agent.Policy
		}
		strict := json.NewDecoder(bytes.NewReader(raw))
		strict.DisallowUnknownFields()
		require.NoError(t, strict.Decode(&file), m[2])
		require.NoError(t, file.Policy.Check(), m[2])
		for name, def := range file.Agents {
			def.Name = name
			require.NoError(t, def.Check(), m[2])
		}
	}
	require.Positive(t, found["json"])
	require.Positive(t, found["yaml"])
}
