package doctor

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
	"github.com/fermata-agents/fermata/skill"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/lock"
)

// namePrice says what to do about a price that is not known.
const namePrice = "name the model under models, with price: {input: …, output: …} for a million tokens"

func (d *examination) checkAgents() {
	if d.file == nil {
		d.found("agents", Skipped, "there is no "+agentsfile.DefaultName+" here, and no --agents", "")
		d.checkKernel()
		return
	}
	for _, def := range d.file.Agents {
		if cold := d.file.ModelsWithoutTemperature(def); len(cold) > 0 {
			d.found("agent", Warning, fmt.Sprintf("the temperature of %s is not sent to %s: the model does not accept one, or not while it thinks", def.Name, strings.Join(cold, ", ")), "leave temperature out, or name another model")
		}
		if d.file.Priced(def.Model) {
			text := fmt.Sprintf("%s with %s", def.Name, def.Model)
			if ways := d.file.ModelSettings(def.Model); ways != "" {
				text += ": " + ways
			}
			d.found("agent", OK, text, "")
		} else {
			d.found("agent", Warning, fmt.Sprintf("%s with %s, whose price is not known: costs are shown as zero", def.Name, def.Model), namePrice)
		}
		for _, name := range d.file.Unpriced(def) {
			if name != def.Model { // a fallback or a judge's
				d.found("agent", Warning, fmt.Sprintf("%s calls %s, too, whose price is not known: its costs are shown as zero", def.Name, name), namePrice)
			}
		}
	}
	for _, w := range d.file.Flows {
		for _, name := range d.file.Unpriced(w.Definition()) {
			d.found("flow", Warning, fmt.Sprintf("%s calls %s, whose price is not known: costs are shown as zero", w.Definition().Name, name), namePrice)
		}
		d.found("flow", OK, w.Definition().Name+": fermata doctor --draw draws it", "")
	}
	for _, s := range d.file.Skills() {
		d.skill(s, s.Name)
	}
	d.checkApprovers()
	d.checkPolicy()
	for _, p := range d.file.PriceTables() {
		d.found("prices", OK, fmt.Sprintf("of %s, as of %s; name a model under models with a price that is newer", p.Provider, p.AsOf), "")
	}
	for _, k := range d.file.Keys() {
		who := strings.Join(k.Agents, ", ")
		if k.Set {
			d.found("key", OK, fmt.Sprintf("%s is set, for %s", k.Env, who), "")
			continue
		}
		d.failed("key", agent.Errorf(agent.CodeProviderAuth, "%s is not set: runs of %s fail", k.Env, who), "export "+k.Env+"=…")
	}
	for _, p := range d.file.Programs() { // programs that agents use are started below
		if p.Err == nil {
			d.found("mcp", Skipped, fmt.Sprintf("%s: %s is there, and no agent uses it", p.Server, p.Command), "")
			continue
		}
		d.found("mcp", Warning, fmt.Sprintf("%s: the command %s can't be started, and no agent uses it: %v", p.Server, p.Command, p.Err), installIt)
	}
	d.checkSandbox()
}

// checkModels signs in to the clouds of models, and asks the servers of models with a
// base_url.
func (d *examination) checkModels(ctx context.Context) {
	if d.file == nil {
		return
	}
	for _, s := range d.file.AskClouds(ctx) {
		if s.Err != nil {
			d.failed("model", s.Err, "")
			continue
		}
		d.found("model", OK, fmt.Sprintf("%s: the worker can sign in from here", s.Name), "")
	}
	for _, s := range d.file.AskModels(ctx) {
		switch {
		case agent.CodeOf(s.Err) == agent.CodeProviderAuth:
			d.failed("model", s.Err, "set the variable of api_key_env in models."+s.Name+" to a key that the server knows")
		case s.Err != nil:
			d.failed("model", s.Err, "start the server, or correct base_url of models."+s.Name)
		case s.Missing:
			d.found("model", Warning, fmt.Sprintf("%s: %s lists %d models, and this one is not among them", s.Name, s.URL, s.Listed), "correct model of models."+s.Name+", unless the server takes other names too")
		case s.Listed > 0:
			d.found("model", OK, fmt.Sprintf("%s: %s lists it, among %d models", s.Name, s.URL, s.Listed), "")
		default:
			d.found("model", OK, fmt.Sprintf("%s: %s answers", s.Name, s.URL), "")
		}
	}
}

// installIt says what to do about a missing program.
const installIt = "install it, or name it with its path"

// checkServers asks the MCP servers that agents use for their tools.
func (d *examination) checkServers(ctx context.Context) {
	if d.file == nil {
		return
	}
	for _, s := range d.file.AskServers(ctx) {
		switch {
		case s.SignIn:
			d.found("mcp", OK, fmt.Sprintf("%s answers, and lists its tools only after a sign-in: runs ask for it", s.Name), "")
		case s.Err == nil:
			text := fmt.Sprintf("%s lists %d tools", s.Name, s.Tools)
			if s.Confinement != "" {
				text += "; " + s.Confinement
			}
			d.found("mcp", OK, text, "")
		case s.Optional:
			d.found("mcp", Warning, s.Err.Error()+"; runs start without its tools", "")
		case s.Gone:
			d.failed("mcp", s.Err, installIt)
		default:
			d.failed("mcp", agent.Errorf(agent.CodeToolFailed, "%w", s.Err), "correct it, or mark it optional: true if runs can do without")
		}
		d.checkPins(s)
	}
}

func (d *examination) skill(s *skill.Skill, name string) {
	d.found("skill", OK, name, "")
	for _, remark := range d.file.SkillRemarks(s) {
		d.found("skill", Warning, s.Name+": "+remark, "see fermata skills show "+s.Name)
	}
}

// checkServed asks MCP servers for the skills that agents name. It reads none.
func (d *examination) checkServed(ctx context.Context) {
	if d.file == nil {
		return
	}
	kit, err := d.file.OpenSkills(ctx)
	if err != nil {
		d.failed("skill", err, "correct it, or mark the server optional: true if runs can do without its skills")
	}
	if kit == nil {
		return
	}
	if err == nil { // else the worker does not start for that reason
		if err := d.CheckWorker(d.file, kit); err != nil {
			d.failed("agent", err, "")
		}
	}
	for _, s := range kit.Served() {
		d.skill(s, s.Name+", of the MCP server "+s.Server)
	}
	for _, err := range kit.Without() {
		d.found("skill", Warning, err.Error()+"; runs start without it", "")
	}
	for _, server := range d.file.SkillServers() {
		// Without its list, a server's skills can't be compared.
		if digests := kit.SkillDigests(server); len(digests) > 0 {
			d.pinned(server, "the list of skills of "+server, func(l *lock.File) ([]tool.Change, bool, error) { return l.CompareSkills(server, digests) })
		}
	}
	_ = kit.Close() // the answers are here
}

// checkPins says which tools of a server runs go without.
func (d *examination) checkPins(s agentsfile.ServerState) {
	// Without its real list, a server can't be compared with what was accepted.
	if s.Err == nil && !s.SignIn {
		d.pinned(s.Name, s.Name, func(l *lock.File) ([]tool.Change, bool, error) { return l.Compare(s.Name, s.Listed, &s.Instructions) })
	}
}

// pinned says what runs go without of what a server lists.
func (d *examination) pinned(server, what string, compare func(*lock.File) (changes []tool.Change, was bool, err error)) {
	l := d.file.Lock()
	if l == nil || !d.file.Pinned(server) {
		d.found("lock", OK, what+" is not pinned: it is taken as it is each time", "")
		return
	}
	changes, was, err := compare(l)
	switch {
	case err != nil:
		d.failed("lock", err, "")
	case !was:
		// The first run would fail to pin it.
		if err := l.CheckWrite(); err != nil {
			d.failed("lock", err, "")
			return
		}
		d.found("lock", OK, fmt.Sprintf("%s is pinned in %s when it is first used", what, filepath.Base(l.Path())), "")
	case len(changes) == 0:
		d.found("lock", OK, what+" is as it was accepted", "")
	default:
		var names []string
		for _, c := range changes {
			names = append(names, untrusted.Name(c.Name))
		}
		d.found("lock", Warning, fmt.Sprintf("%s is not as it was accepted, and runs go without %s", what, strings.Join(names, ", ")), "look at it with fermata lock, then fermata lock --accept "+server)
	}
}
