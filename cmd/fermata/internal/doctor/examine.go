package doctor

import (
	"context"
	"fmt"
	"strings"

	"go.temporal.io/api/workflowservice/v1"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/localworker"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/render"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/worker"
)

// Verdict is the result of one check.
type Verdict string

const (
	OK      Verdict = "ok"
	Warning Verdict = "warn" // it works, and could be better
	Failed  Verdict = "FAIL" // runs do not work
	Skipped Verdict = "-"    // there was nothing to check, or it is not set up
)

// Finding is the result of one check, with what to do.
type Finding struct {
	What    string
	Verdict Verdict
	Text    string
	Todo    string
	Code    agent.Code // if it failed
}

// examination checks everything that runs need.
type examination struct {
	*localworker.Host
	findings []Finding
	server   *connect.Server // nil if no server answers
	file     *agentsfile.File
}

func (d *examination) found(what string, v Verdict, text, todo string) {
	d.findings = append(d.findings, Finding{What: what, Verdict: v, Text: text, Todo: todo})
}

func (d *examination) failed(what string, err error, todo string) {
	// One finding for each error, so each has its own remedy's line.
	for _, f := range render.Faults(err) {
		d.findings = append(d.findings, Finding{What: what, Verdict: Failed, Text: f.Message, Todo: todo, Code: f.Code})
	}
}

// Examine checks everything that runs need, and changes nothing. file is the agents file,
// nil if there is none; fileErr says why it can't be used.
func Examine(ctx context.Context, host *localworker.Host, file *agentsfile.File, fileErr error) []Finding {
	d := &examination{Host: host, file: file}
	if private, err := d.Private(); err == nil && file != nil { // an error is reported below
		file.Private = private
	}
	// Without the keys every read would fail, and say less than the missing keys.
	if d.checkKeys() {
		d.checkPlaces(ctx)
	} else {
		d.found("server", Skipped, "not checked, nor is the store: nothing can be read or written without the keys", "")
	}
	// Also without keys: the audit has a key of its own.
	d.checkAudit()
	if fileErr != nil {
		d.failed("agents", fileErr, "")
		return d.findings
	}
	d.checkAgents()
	d.checkModels(ctx)
	d.checkServers(ctx)
	d.checkServed(ctx)
	d.checkSecurity()
	return d.findings
}

// checkPlaces checks where runs are kept.
func (d *examination) checkPlaces(ctx context.Context) {
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

func (d *examination) checkServer(ctx context.Context) {
	s, err := d.Look(ctx)
	dir, dirErr := d.DataDir()
	switch {
	case err != nil:
		d.failed("server", err, "")
	case s != nil:
		d.server = s
		d.found("server", OK, s.Addr, "")
	case dirErr != nil:
		d.failed("server", dirErr, "")
	default:
		d.found("server", OK, "none is named and none runs: run and dev start one, with its data in "+dir, "")
	}
}

// checkNamespace reports whether the namespace exists.
func (d *examination) checkNamespace(ctx context.Context) bool {
	ns, err := d.server.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: d.server.Namespace})
	// A missing namespace is the usual reason, so the command that creates it is the remedy.
	if err != nil {
		d.failed("namespace", durable.FromRPC(err), d.TemporalLine(d.server, "operator namespace create -n "+d.server.Namespace))
		return false
	}
	d.found("namespace", OK, d.server.Namespace, "")
	switch missing, err := worker.MissingAttributes(ctx, d.server.Client); {
	case err != nil:
		d.failed("attributes", err, "")
	case len(missing) > 0:
		d.failed("attributes", agent.Errorf(agent.CodeNotSetUp, "the namespace lacks %s", strings.Join(missing, ", ")), "fermata setup")
	default:
		d.found("attributes", OK, "all search attributes are there", "")
	}
	if ns.GetNamespaceInfo().GetCapabilities().GetWorkerCommands() {
		d.found("cancel", OK, "a cancellation reaches tools and models at once", "")
		return true
	}
	d.found("cancel", Warning, "a cancellation reaches tools and models with their next heartbeat, after up to 12 s",
		"set frontend.WorkerCommandsEnabled and system.enableCancelActivityWorkerCommand in the server's dynamic configuration")
	return true
}

func (d *examination) checkWorker(ctx context.Context) {
	names, err := d.Pollers(ctx, d.server)
	switch {
	case err != nil:
		d.failed("worker", err, "")
	case len(names) > 0:
		// Workers that poll may still get no run, because of their version.
		if why, do := d.WhyUnrouted(ctx, d.server); why != "" {
			d.failed("worker", agent.Errorf(agent.CodeNoWorker, "%s", why), do)
			return
		}
		d.found("worker", OK, fmt.Sprintf("%s at task queue %s", strings.Join(names, ", "), d.Queue()), "")
	case d.file != nil:
		d.found("worker", Warning, "none at task queue "+d.Queue()+": runs wait until one polls; fermata run starts one for "+d.file.Path, d.CommandLine("worker --agents %s", connect.ShellWord(d.file.Path)))
	default:
		d.failed("worker", agent.Errorf(agent.CodeNoWorker, "none at task queue %s, and there is no agents file here", d.Queue()), d.CommandLine("worker --agents FILE"))
	}
}
