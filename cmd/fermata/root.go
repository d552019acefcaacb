package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/auditor"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/console"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/exporters"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/localworker"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/logging"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/render"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/terminal"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/version"
)

// cli is one invocation of the command.
type cli struct {
	render.Streams
	*connect.Connector
	// host starts workers in this process.
	host    *localworker.Host
	in      io.Reader
	verbose bool
	// terminal tells that a person sits at standard input and output, who can be asked.
	terminal bool
	// keys are that person's Ctrl-C.
	keys *terminal.Keys
	// asker is what that person is asked by, once somebody was.
	asker *console.Console
	// exports is where a worker of this process tells what runs do.
	exports exporters.Exporters
	// workBegan tells that the command's own work has begun: errors before are of usage.
	workBegan bool
}

func newCLI(stdin io.Reader, stdout, stderr io.Writer) *cli {
	c := &cli{in: stdin, terminal: terminal.Is(stdin) && terminal.Is(stdout), keys: terminal.NewKeys(func() {})}
	c.Out, c.Err = terminal.Open(stdout, stderr)
	c.Connector = &connect.Connector{Notify: c.Note}
	c.host = &localworker.Host{Connector: c.Connector, Audit: &auditor.Record{}}
	return c
}

// execute runs the command and returns its exit status. It ends, cleanly, with
// the context.
func (c *cli) execute(ctx context.Context, args []string) int {
	root := c.root()
	root.SetArgs(args)
	root.SetIn(c.in)
	root.SetOut(c.Out)
	root.SetErr(c.Err)
	defer c.Close()
	defer func() {
		if err := c.host.Audit.Close(); err != nil {
			c.Note("fermata: %v", err)
		}
	}()
	defer func() {
		if err := c.exports.Flush(); err != nil {
			c.Note("fermata: %v", err)
		}
	}()
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !c.workBegan {
		c.JSON = c.JSON || asksJSON(args) // a flag before it may have been wrong
		err = usage(cmd, err)
	}
	if why := c.StoreError(); why != nil && (errors.Is(err, fermata.ErrNoStore) || err == why) {
		err = why
		if !c.JSON { // it was said
			err = agent.Errorf(agent.CodeOf(why), "this needs the store, which is not there: see the warning above")
		}
	}
	if err == nil {
		err = c.Out.Failed()
	}
	status := c.end(ctx, err)
	if lost := c.Out.Failed(); lost != nil && !errors.Is(err, agent.CodeNotWritten) {
		c.fail(render.Faults(lost)[0])
	}
	return status
}

func (c *cli) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "fermata",
		Short: "Durable agents on Temporal",
		Long: `Fermata runs agents as Temporal workflows: a run outlives the process that
works on it, and goes on where it was.

Where no Temporal server is named (--address, --profile, TEMPORAL_ADDRESS or a
profile in temporal.toml), run, demo and dev start one inside of their own
process, with its data in the data directory.`,
		Example: `  fermata demo
  fermata run reviewer "Review the last commit"
  fermata dev
  fermata inbox
  fermata interrupt invoice-118 --reason "the client rings"`,
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version.Program(),
		PersistentPreRun: func(cmd *cobra.Command, _ []string) {
			c.workBegan, c.Log = true, logging.New(c.Err, c.verbose)
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.CompletionOptions.HiddenDefaultCmd = true
	f := root.PersistentFlags()
	f.StringVar(&c.Address, "address", "", "Temporal server, HOST:PORT")
	f.StringVar(&c.Namespace, "namespace", "", "Temporal namespace (default \"default\")")
	f.StringVar(&c.Profile, "profile", "", "profile in temporal.toml")
	f.StringVar(&c.TaskQueue, "task-queue", "", "task queue of the runs (default \"fermata\")")
	f.StringVar(&c.Data, "data", "", "data directory of the embedded server and the store (default the user's own)")
	f.StringVar(&c.Store, "store", "", "folder of the transcripts, a database, postgres://…, or a bucket, s3://… (default \"store\" in the data directory)")
	f.BoolVar(&c.StoreShared, "store-shared", false, "every worker sees the store's folder, on whatever machine")
	f.BoolVar(&c.verbose, "verbose", false, "log what Temporal and the worker do, on standard error")
	root.AddCommand(c.demoCommand(), c.devCommand(), c.workerCommand(), c.runCommand(), c.attachCommand(), c.waitCommand(), c.transcriptCommand(), c.eventsCommand(),
		c.listCommand(), c.showCommand(), c.treeCommand(), c.setupCommand(), c.doctorCommand(), c.lockCommand(), c.preflightCommand(), c.versionCommand(),
		c.pauseCommand(), c.interruptCommand(), c.stopCommand(), c.cancelCommand(), c.resumeCommand(), c.sendCommand(), c.emitCommand(),
		c.inboxCommand(), c.answerCommand(), c.approveCommand(), c.rejectCommand(), c.tokenCommand(), c.handoffCommand(), c.storeCommand(),
		c.runsCommand(), c.checkpointsCommand(), c.diffCommand(), c.forkCommand(), c.retryCommand(), c.chatCommand(), c.deleteCommand(),
		c.exportCommand(), c.importCommand(), c.scheduleCommand(), c.codecCommand(), c.auditCommand())
	return root
}

// observe sends traces and metrics to where the environment says. It comes before the
// server is dialled, whose client counts too.
func (c *cli) observe(ctx context.Context) (err error) {
	c.exports, err = exporters.Open(ctx, c.Err, c.Log.Logger)
	c.Meters, c.host.Observer = c.exports.Meters, c.exports.Observer
	return err
}
