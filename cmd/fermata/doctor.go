package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/render"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/worker"
)

// verdict is what comes of one check.
type verdict string

const (
	verdictOK      verdict = "ok"
	verdictWarning verdict = "warn" // it works, and could be better
	verdictFailed  verdict = "FAIL" // runs do not work
	verdictSkipped verdict = "-"    // there was nothing to look at, or it is not set up
)

// finding is one check's result.
type finding struct {
	what    string
	verdict verdict
	text    string
	todo    string
	code    agent.Code // of one that fails
}

// doctor looks at everything that runs need.
type doctor struct {
	*cli
	agents   string
	findings []finding
	server   *connect.Server // nil where none answers
	file     *agentsfile.File
}

func (c *cli) doctorCommand() *cobra.Command {
	d := &doctor{cli: c}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check everything that runs need, and say what to do",
		Long: `Doctor looks at the server, its namespace, a worker, the store, the audit, the agents
file with its models, their keys and their servers, MCP servers, which it asks for
their tools, and the shell. One line names what of docs/security.md is not set up,
which is no fault. It changes nothing and shows no key. The exit status is 0 if all
that is needed is there.`,
		Example: `  fermata doctor
  fermata doctor --agents fermata.yaml --profile prod
  fermata doctor --json | jq -r 'select(.verdict=="fail").text'`,
		Args: wants(0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error { return d.examine(cmd.Context()) },
	}
	cmd.Flags().StringVar(&d.agents, "agents", "", "agents file (default \"fermata.yaml\" where it is there)")
	c.jsonFlag(cmd, "print one finding as JSON a line")
	return cmd
}

// findingLine is a finding for programs.
type findingLine struct {
	V       int        `json:"v"`
	Check   string     `json:"check"`
	Verdict string     `json:"verdict"` // ok, warn, fail or skipped
	Text    string     `json:"text"`
	Todo    string     `json:"todo,omitempty"`
	Code    agent.Code `json:"code,omitempty"`
}

// tell prints a finding.
func (d *doctor) tell(f finding) {
	text := untrusted.Fold(f.text)
	if d.JSON {
		verdict := strings.ToLower(string(f.verdict))
		if f.verdict == verdictSkipped {
			verdict = "skipped"
		}
		d.Line(findingLine{agent.Version, f.what, verdict, text, f.todo, f.code})
		return
	}
	d.Print("%-5s%-12s%s", f.verdict, f.what, text)
	if f.todo != "" {
		d.Print("     %-12s-> %s", "", f.todo)
	}
}

func (d *doctor) found(what string, v verdict, text, todo string) {
	d.findings = append(d.findings, finding{what: what, verdict: v, text: text, todo: todo})
}

func (d *doctor) failed(what string, err error, todo string) {
	for _, f := range render.Faults(err) {
		d.findings = append(d.findings, finding{what: what, verdict: verdictFailed, text: f.Message, todo: todo, code: f.Code})
	}
}

func (d *doctor) examine(ctx context.Context) error {
	file, fileErr := agentsFile(ctx, d.agents)
	d.file = file
	if private, err := d.host.Private(); err == nil && file != nil { // what is wrong is told below
		file.Private = private
	}
	if d.checkKeys() {
		d.checkPlaces(ctx)
	} else {
		d.found("server", verdictSkipped, "not looked at, nor the store: nothing is read or written without the keys", "")
	}
	d.checkAudit()
	if fileErr != nil {
		d.failed("agents", fileErr, "")
	} else {
		d.checkAgents()
		d.checkModels(ctx)
		d.checkServers(ctx)
		d.checkSecurity()
	}
	status := error(nil)
	for _, f := range d.findings {
		d.tell(f)
		if f.verdict == verdictFailed && status == nil {
			status = ended(f.code.ExitStatus())
		}
	}
	return status
}

// checkPlaces looks at what runs are kept in.
func (d *doctor) checkPlaces(ctx context.Context) {
	d.checkServer(ctx)
	there := false
	if d.server != nil {
		defer d.server.Close()
		d.checkConnection(ctx)
		there = d.checkNamespace(ctx)
	}
	if there {
		d.checkWorker(ctx)
	}
	d.checkStore(ctx, there)
	d.checkDisks()
	d.checkBroker()
}

func (d *doctor) checkServer(ctx context.Context) {
	s, err := d.Look(ctx)
	dir, dirErr := d.DataDir()
	switch {
	case err != nil:
		d.failed("server", err, "")
	case s != nil:
		d.server = s
		d.found("server", verdictOK, s.Addr, "")
	case dirErr != nil:
		d.failed("server", dirErr, "")
	default:
		d.found("server", verdictOK, "none is named and none runs: run and dev start one, with its data in "+dir, "")
	}
}

// checkNamespace reports whether there is one.
func (d *doctor) checkNamespace(ctx context.Context) bool {
	ns, err := d.server.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: d.server.Namespace})
	if err != nil {
		d.failed("namespace", durable.FromRPC(err), d.TemporalLine(d.server, "operator namespace create -n "+d.server.Namespace))
		return false
	}
	d.found("namespace", verdictOK, d.server.Namespace, "")
	switch missing, err := worker.MissingAttributes(ctx, d.server.Client); {
	case err != nil:
		d.failed("attributes", err, "")
	case len(missing) > 0:
		d.failed("attributes", agent.Errorf(agent.CodeNotSetUp, "the namespace lacks %s", strings.Join(missing, ", ")), "fermata setup")
	default:
		d.found("attributes", verdictOK, "all search attributes are there", "")
	}
	if ns.GetNamespaceInfo().GetCapabilities().GetWorkerCommands() {
		d.found("cancel", verdictOK, "a cancellation reaches tools and models at once", "")
		return true
	}
	d.found("cancel", verdictWarning, "a cancellation reaches tools and models with their next heartbeat, after up to 12 s",
		"set frontend.WorkerCommandsEnabled and system.enableCancelActivityWorkerCommand in the server's dynamic configuration")
	return true
}

func (d *doctor) checkWorker(ctx context.Context) {
	names, err := d.Pollers(ctx, d.server)
	switch {
	case err != nil:
		d.failed("worker", err, "")
	case len(names) > 0:
		if why, do := d.WhyUnrouted(ctx, d.server); why != "" {
			d.failed("worker", agent.Errorf(agent.CodeNoWorker, "%s", why), do)
			return
		}
		d.found("worker", verdictOK, fmt.Sprintf("%s at task queue %s", strings.Join(names, ", "), d.Queue()), "")
	case d.file != nil:
		d.found("worker", verdictWarning, "none at task queue "+d.Queue()+": runs wait until one polls; fermata run starts one for "+d.file.Path, "fermata worker --agents "+connect.ShellWord(d.file.Path))
	default:
		d.failed("worker", agent.Errorf(agent.CodeNoWorker, "none at task queue %s, and there is no agents file here", d.Queue()), "fermata worker --agents FILE")
	}
}

// checkStore looks at the store, and whether it is that of the task queue if the namespace is
// there that says so.
func (d *doctor) checkStore(ctx context.Context, recorded bool) {
	if place, err := d.StorePlace(); err == nil && !strings.Contains(place, "://") && !store.IsDir(place) {
		d.checkNoStore(ctx, place, recorded)
		return
	}
	transcripts, err := d.OpenStore(ctx)
	if err == nil {
		err = answers(ctx, transcripts.Inner())
	}
	for _, f := range connect.StoreFolders(transcripts) {
		err = errors.Join(writable(f.Path), err)
	}
	switch {
	case agent.CodeOf(err) == agent.CodeChunkDamaged: // it says what to do
		d.failed("store", err, "")
		return
	case err != nil:
		d.failed("store", err, "make it reachable, or name another one with --store")
		return
	}
	if recorded {
		err = d.CheckStore(ctx, d.server, transcripts)
	} else if d.server != nil {
		err = store.CheckNamespace(ctx, transcripts, d.server.Namespace)
	}
	if !errors.Is(err, agent.CodeNotSetUp) {
		err = readable(ctx, transcripts)
	}
	switch {
	case errors.Is(err, agent.CodeNotSetUp):
		d.failed("store", err, "")
	case errors.Is(err, agent.CodeChunkDamaged):
		d.found("store", verdictWarning, store.Location(transcripts)+": heads of sessions are damaged, and their runs can't go on: "+err.Error(), "fermata store check")
	default:
		d.found("store", verdictOK, store.Location(transcripts), "")
	}
}

// readable reports whether a worker could decrypt a store, as [worker.CheckStoreKeys] does.
func readable(ctx context.Context, s store.Store) error {
	soon, cancel := context.WithTimeout(ctx, connect.StorePatience)
	defer cancel()
	return worker.CheckStoreKeys(soon, s)
}

// noSession is a session that nobody begins; doctor asks the store for its head.
const noSession = "fermata-doctor"

// answers reads one head and the identity from a store: to open a bucket sends nothing to it.
func answers(ctx context.Context, s store.Store) error {
	soon, cancel := context.WithTimeout(ctx, connect.StorePatience)
	defer cancel()
	_, err := s.Head(soon, noSession)
	if err == nil || errors.Is(err, agent.CodeNotFound) || errors.Is(err, agent.CodeChunkDamaged) {
		_, err = store.ReadID(soon, s)
	}
	return connect.Silent(ctx, err)
}

// checkNoStore looks at a folder that is to become a store, and makes none of it.
func (d *doctor) checkNoStore(ctx context.Context, place string, recorded bool) {
	if recorded {
		if err := d.CheckLostStore(ctx, d.server); err != nil {
			d.failed("store", err, "")
			return
		}
	}
	there := place
	for _, err := os.Stat(there); os.IsNotExist(err) && there != filepath.Dir(there); _, err = os.Stat(there) {
		there = filepath.Dir(there)
	}
	if err := writable(there); err != nil {
		d.failed("store", err, "make it writable, or name another one with --store")
		return
	}
	d.found("store", verdictOK, place+", which is made when it is first used", "")
}

func (d *doctor) checkAgents() {
	if d.file == nil {
		d.found("agents", verdictSkipped, "there is no "+agentsfile.DefaultName+" here, and no --agents", "")
		d.checkKernel()
		return
	}
	for _, def := range d.file.Agents {
		if cold := d.file.ModelsWithoutTemperature(def); len(cold) > 0 {
			d.found("agent", verdictWarning, fmt.Sprintf("the temperature of %s is not sent to %s: a model that takes none, or none while it thinks", def.Name, strings.Join(cold, ", ")), "leave temperature out, or name another model")
		}
		if d.file.Priced(def.Model) {
			text := fmt.Sprintf("%s with %s", def.Name, def.Model)
			if ways := d.file.ModelSettings(def.Model); ways != "" {
				text += ": " + ways
			}
			d.found("agent", verdictOK, text, "")
			continue
		}
		d.found("agent", verdictWarning, fmt.Sprintf("%s with %s, whose price is not known: costs are shown as nothing", def.Name, def.Model),
			"name the model under models, with price: {input: …, output: …} for a million tokens")
	}
	d.checkApprovers()
	d.checkPolicy()
	for _, p := range d.file.PriceTables() {
		d.found("prices", verdictOK, fmt.Sprintf("of %s, as of %s; name a model under models with a price that is newer", p.Provider, p.AsOf), "")
	}
	for _, k := range d.file.Keys() {
		who := strings.Join(k.Agents, ", ")
		if k.Set {
			d.found("key", verdictOK, fmt.Sprintf("%s is set, for %s", k.Env, who), "")
			continue
		}
		d.failed("key", agent.Errorf(agent.CodeProviderAuth, "%s is not set: runs of %s fail", k.Env, who), "export "+k.Env+"=…")
	}
	for _, p := range d.file.Programs() { // those that agents use are asked below
		if p.Err == nil {
			d.found("mcp", verdictSkipped, fmt.Sprintf("%s: %s is there, and no agent uses it", p.Server, p.Command), "")
			continue
		}
		d.found("mcp", verdictWarning, fmt.Sprintf("%s: the command %s can't be started, and no agent uses it: %v", p.Server, p.Command, p.Err), installIt)
	}
	d.checkSandbox()
}

// checkModels signs in to the clouds of models, and asks the servers of those that have a
// base_url.
func (d *doctor) checkModels(ctx context.Context) {
	if d.file == nil {
		return
	}
	for _, s := range d.file.AskClouds(ctx) {
		if s.Err != nil {
			d.failed("model", s.Err, "")
			continue
		}
		d.found("model", verdictOK, fmt.Sprintf("%s: the worker can sign in from here", s.Name), "")
	}
	for _, s := range d.file.AskModels(ctx) {
		switch {
		case agent.CodeOf(s.Err) == agent.CodeProviderAuth:
			d.failed("model", s.Err, "set the variable of api_key_env in models."+s.Name+" to a key that the server knows")
		case s.Err != nil:
			d.failed("model", s.Err, "start the server, or correct base_url of models."+s.Name)
		case s.Missing:
			d.found("model", verdictWarning, fmt.Sprintf("%s: %s lists %d models, and this one is not among them", s.Name, s.URL, s.Listed), "correct model of models."+s.Name+", unless the server takes other names too")
		case s.Listed > 0:
			d.found("model", verdictOK, fmt.Sprintf("%s: %s lists it, among %d models", s.Name, s.URL, s.Listed), "")
		default:
			d.found("model", verdictOK, fmt.Sprintf("%s: %s answers", s.Name, s.URL), "")
		}
	}
}

// installIt is what to do about a program that is not there.
const installIt = "install it, or name it with its path"

// checkServers asks the MCP servers that agents use for their tools.
func (d *doctor) checkServers(ctx context.Context) {
	if d.file == nil {
		return
	}
	for _, s := range d.file.AskServers(ctx) {
		switch {
		case s.SignIn:
			d.found("mcp", verdictOK, fmt.Sprintf("%s answers, and lists its tools to who has signed in: runs ask for that", s.Name), "")
		case s.Err == nil:
			text := fmt.Sprintf("%s lists %d tools", s.Name, s.Tools)
			if s.Confinement != "" {
				text += "; " + s.Confinement
			}
			d.found("mcp", verdictOK, text, "")
		case s.Optional:
			d.found("mcp", verdictWarning, s.Err.Error()+"; runs begin without its tools", "")
		case s.Gone:
			d.failed("mcp", s.Err, installIt)
		default:
			d.failed("mcp", agent.Errorf(agent.CodeToolFailed, "%w", s.Err), "correct it, or mark it optional: true if runs can do without")
		}
		d.checkPins(s)
	}
}
