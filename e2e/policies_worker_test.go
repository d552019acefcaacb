package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"go.temporal.io/sdk/activity"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/skill"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/workspace"
	"github.com/fermata-agents/fermata/worker"
)

// policiesEnv makes this test binary a worker of all rows, which works until it is killed. It has a
// policyWorld as JSON.
const policiesEnv = "FERMATA_E2E_POLICIES"

// policyWorld is what the workers of all rows share: a server, and a folder for the store, for the
// points that were reached, and for the payments.
type policyWorld struct {
	Addr, Queue, Dir string

	mu sync.Mutex
	// last has the last request of each session to the newest worker of this process.
	last map[string]model.Request
}

// policySession names a run of a row. The column says what happens to it.
func policySession(row, column string) string { return "policies-" + row + "-" + column }

// The columns.
const (
	columnCalm   = "calm"   // nothing happens
	columnKill   = "kill"   // its worker is killed with -9 at the row's point
	columnHold   = "hold"   // it is interrupted at the row's point
	columnBefore = "before" // a fork from before the policy acted
	columnAfter  = "after"  // a fork from after it
)

// forked reports whether a session is a fork of a row's run.
func forked(session string) bool {
	return strings.HasSuffix(session, "-"+columnBefore) || strings.HasSuffix(session, "-"+columnAfter)
}

// reach blocks a run at its row's point until its context ends, once: a second worker, or a resumed
// run, passes. The file says that the point was reached.
func (w *policyWorld) reach(ctx context.Context, session, point string) error {
	session, _, _ = strings.Cut(session, "/")
	for _, row := range policyRows() {
		kill := session == policySession(row.name, columnKill) && point == row.at
		hold := session == policySession(row.name, columnHold) && point == row.holdPoint()
		if !kill && !hold {
			continue
		}
		f, err := os.OpenFile(w.reached(session), os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, os.ErrExist) {
			return nil
		} else if err != nil {
			return err
		}
		_ = f.Close()
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (w *policyWorld) reached(session string) string {
	return filepath.Join(w.Dir, "reached-"+session)
}

// policyModel is a row's model. Forks get one answer.
type policyModel struct {
	model.Model
	w *policyWorld
}

// Generate names the point of the call: a turn of the row's agent, its last reply, or who looks.
func (m policyModel) Generate(ctx context.Context, r *model.Request, emit func(model.Delta)) (*model.Reply, error) {
	session, _, _ := strings.Cut(r.Call.Session, "/")
	point := fmt.Sprintf("turn %d", r.Call.Turn)
	looks := strings.HasPrefix(r.Instructions, "You judge") || strings.HasPrefix(r.Instructions, "You guard") || r.Call.Agent == "verifier"
	switch {
	case looks:
		point = "looks"
	case len(r.Messages) > 0 && r.Messages[len(r.Messages)-1].Note == agent.NoteSummary:
		point = "last reply"
	case r.Call.Session == session: // and not a sub-agent's
		m.w.mu.Lock()
		m.w.last[session] = *r
		m.w.mu.Unlock()
	}
	if err := m.w.reach(ctx, r.Call.Session, point); err != nil {
		return nil, err
	}
	if looks {
		return looker(ctx, r), nil // also for the judge of a start, who is the row's own model
	}
	if forked(session) {
		return forkReply(r), nil
	}
	reply, err := m.Model.Generate(ctx, r, emit)
	if err != nil {
		return nil, err
	}
	for _, p := range reply.Parts {
		if p.Call != nil {
			p.Call.Arguments = bytes.ReplaceAll(p.Call.Arguments, []byte(sessionInReplies), []byte(r.Call.Session))
		}
	}
	return reply, nil
}

// sessionInReplies is replaced by the session in the calls of a row's replies.
const sessionInReplies = "SESSION"

// instructionsOf are those of a build, for agents that renew them.
func instructionsOf(build string) string { return "The instructions of build " + build + "." }

// parker is the model of a sub-agent that waits for its parent.
func parker(_ context.Context, r *model.Request) *model.Reply {
	if len(r.Messages) == 1 {
		return callsTool(agent.AwaitResumptionTool, `{"reason":"a decision","conditions":{}}`)
	}
	return saysText("parked")
}

// policyStore blocks a run that has just written its memory, which the worker does not know yet.
type policyStore struct {
	store.Store
	w *policyWorld
}

func (s policyStore) PutHead(ctx context.Context, h store.Head) error {
	if err := s.Store.PutHead(ctx, h); err != nil || !strings.HasPrefix(h.Session, "_memory/") {
		return err
	}
	return s.w.reach(ctx, activity.GetInfo(ctx).WorkflowExecution.ID, "memory")
}

// policyTools are the tools of all rows. pay has an effect that may not be doubled.
func (w *policyWorld) policyTools() []tool.Tool {
	pay := func(_ context.Context, c *tool.Call, _ struct{}) (string, error) {
		f, err := os.OpenFile(filepath.Join(w.Dir, "paid"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return "", err
		}
		defer f.Close()
		_, err = fmt.Fprintln(f, c.Session, c.Key)
		return "paid", err
	}
	says := func(text string) func(context.Context, *tool.Call, struct{}) (string, error) {
		return func(context.Context, *tool.Call, struct{}) (string, error) { return text, nil }
	}
	breaks := func(context.Context, *tool.Call, struct{}) (string, error) {
		return "", errors.New("out of order")
	}
	check := func(ctx context.Context, c *tool.Call, p agent.Proposal) (string, error) {
		if err := w.reach(ctx, c.Session, "looks"); err != nil {
			return "", err
		}
		if p.Text == "first" {
			return "not enough", nil
		}
		return "", nil
	}
	read := func(_ context.Context, _ *tool.Call, in struct {
		Page int `json:"page"`
	}) (string, error) {
		return fmt.Sprintf("page %d %s", in.Page, strings.Repeat("whale ", 700)), nil
	}
	sumUp := func(ctx context.Context, c *tool.Call, _ agent.CompactionInput) (agent.CompactionSummary, error) {
		return agent.CompactionSummary{Summary: "Summed up by hand."}, w.reach(ctx, c.Session, "sums up")
	}
	return append(append(w.hookTools(), stateTools()...),
		tool.New("read", "reads a page", read, readOnly), tool.New("sum_up", "sums up", sumUp, readOnly),
		tool.New("pay", "pays an invoice", pay, nil), tool.New("look", "looks around", says("nothing"), nil), tool.New("listen", "listens", says("silence"), nil),
		tool.New("broken", "breaks", breaks, nil), tool.New("check", "checks", check, readOnly),
	)
}

// looker is the model of the judge and of the verifying agent: they veto the answer "first", and calls of
// look.
func looker(_ context.Context, r *model.Request) *model.Reply {
	asked := r.Messages[0].Text() // a resumed agent has a note behind it
	if strings.HasSuffix(asked, `"answer":{"text":"first"}}`) || strings.HasSuffix(strings.TrimSpace(asked), "\nfirst") {
		return saysText(`{"reasoning":"not enough","verdict":"veto"}`)
	}
	if _, calls, ok := strings.Cut(asked, `"calls":[`); ok && strings.Contains(calls, `"tool":"look"`) {
		return saysText(`{"reasoning":"not now","verdict":"veto"}`)
	}
	return saysText(`{"reasoning":"enough","verdict":"accept"}`)
}

// options are those of a worker of a build. The agents of build "b" name no policy: a run keeps those
// that it began with. Only what the next run finds in its session is said by that run's agent.
func (w *policyWorld) options(build string, st store.Store) (o *worker.Options, done func() error, err error) {
	files, err := workspace.Open(w.Dir, &workspace.Options{AsRoot: true, Confine: tool.ConfineWherePossible})
	if err != nil {
		return nil, nil, err
	}
	w.mu.Lock()
	w.last = map[string]model.Request{}
	w.mu.Unlock()
	o = &worker.Options{
		TaskQueue: w.Queue, Build: build, Store: policyStore{st, w}, Logger: zap.NewNop(), Temporal: stopsSoon,
		Tools:      append(files.Tools(), w.policyTools()...),
		Models:     map[string]model.Model{"looks": modelFunc(looker), "parks": modelFunc(parker)},
		Middleware: []model.Middleware{func(m model.Model) model.Model { return policyModel{m, w} }},
		Agents:     []agent.Definition{{Name: "verifier", Model: "looks", Instructions: "Verify."}, {Name: "parker", Model: "parks", Tools: []string{agent.AwaitResumptionTool}}},
	}
	for _, row := range policyRows() {
		o.Models[row.name] = testsuite.NewScript(row.replies...).WithInfo(model.Info{Window: row.window})
		def := agent.Definition{Tools: row.def.Tools, PersistState: row.def.PersistState}
		if build == "a" {
			def = row.def
		}
		if row.def.RefreshOnResume {
			def.Instructions = instructionsOf(build)
		}
		def.Name, def.Model = row.name, row.name
		o.Agents = append(o.Agents, def)
	}
	if build == "a" {
		if o.Skills, err = policySkills(w.Dir); err != nil {
			return nil, nil, err
		}
	}
	w.addSorter(o, build)
	forms, err := w.addForms(o)
	return o, func() error { return errors.Join(files.Close(), forms()) }, err
}

// policySkills reads the skills of the rows, and writes them first.
func policySkills(dir string) ([]*skill.Skill, error) {
	dir = filepath.Join(dir, "skills")
	for _, name := range []string{"ship", "go"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return nil, err
		}
		text := "---\nname: " + name + "\ndescription: Deploy a release.\nallowed-tools: pay\n---\nThe words of " + name + ".\n"
		if err := os.WriteFile(filepath.Join(dir, name, "SKILL.md"), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	return skill.ReadDirs(dir)
}

// workPolicies is the main function of the process that is killed.
func workPolicies(spec string) error {
	w := &policyWorld{}
	if err := json.Unmarshal([]byte(spec), w); err != nil {
		return err
	}
	c, err := remote(w.Addr).Dial(context.Background(), connection(slog.DiscardHandler))
	if err != nil {
		return err
	}
	st, _, err := openStore(w.Dir) // until it is killed
	if err != nil {
		return err
	}
	o, _, err := w.options("a", st)
	if err != nil {
		return err
	}
	return workFor(c, o)
}

// paidBy returns how often a session has paid, and whether a payment was made twice.
func (w *policyWorld) paidBy(session string) (n int, twice bool) {
	b, err := os.ReadFile(filepath.Join(w.Dir, "paid"))
	if err != nil {
		return 0, false
	}
	var keys []string
	for line := range strings.Lines(string(b)) {
		if of, key, _ := strings.Cut(strings.TrimSpace(line), " "); of == session {
			twice = twice || slices.Contains(keys, key)
			keys = append(keys, key)
		}
	}
	return len(keys), twice
}
