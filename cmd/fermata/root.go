package main

import (
	"context"
	"errors"
	"io"
	"strings"

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
	// terminal says that a person is at standard input and output, who can be asked.
	terminal bool
	// keys receives that person's Ctrl-C.
	keys *terminal.Keys
	// asker asks that person; nil until the first question.
	asker *console.Console
	// exports is where a worker of this process reports what runs do.
	exports exporters.Exporters
	// agents is the agents file as the user named it; empty for the one of this directory.
	agents string
	// embedded says that a Temporal server of this process ends with the command.
	embedded bool
	// workBegan says that the command's own work has started: errors before are about usage.
	workBegan bool
}

// Help lists the commands of a group in the order in which users meet them.
func init() { cobra.EnableCommandSorting = false }

func newCLI(stdin io.Reader, stdout, stderr io.Writer) *cli {
	c := &cli{in: stdin, terminal: terminal.Is(stdin) && terminal.Is(stdout), keys: terminal.NewKeys(func() {})}
	c.Out, c.Err = terminal.Open(stdout, stderr)
	c.Connector = &connect.Connector{Notify: c.Note}
	c.host = &localworker.Host{Connector: c.Connector, Audit: &auditor.Record{}}
	return c
}

// execute runs the command and returns its exit status. When the context ends, it stops
// cleanly.
func (c *cli) execute(ctx context.Context, args []string) int {
	root := c.root()
	root.SetArgs(args)
	root.SetIn(c.in)
	root.SetOut(c.Out)
	root.SetErr(c.Err)
	// Deferred calls run in reverse: exports are flushed first, the connections close last.
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
	// cobra's own errors don't say how the command is used.
	if err != nil && !c.workBegan {
		// The flags may not be parsed yet: one before --json may have been wrong.
		c.JSON = c.JSON || asksJSON(args)
		err = usage(cmd, err)
	}
	// The store's own error explains more than that a store is missing.
	if why := c.StoreError(); why != nil && (errors.Is(err, fermata.ErrNoStore) || err == why) {
		err = why
		if !c.JSON { // it was shown as a warning
			err = agent.Errorf(agent.CodeOf(why), "this needs the store, which is not there: see the warning above")
		}
	}
	// A result that could not be written must not count as success.
	if err == nil {
		err = c.Out.Failed()
	}
	status := c.end(ctx, c.storeMissing(err))
	// The error line itself may be what could not be written.
	if lost := c.Out.Failed(); lost != nil && !errors.Is(err, agent.CodeNotWritten) {
		c.fail(render.Faults(lost)[0])
	}
	return status
}

// storeMissing says in words of this command where no store is.
func (c *cli) storeMissing(err error) error {
	// By its text: an error that joins several causes keeps only that.
	if err == nil || !strings.Contains(err.Error(), fermata.ErrNoStore.Error()) {
		return err
	}
	place, lost := c.StorePlace()
	if lost != nil {
		return lost
	}
	text := strings.ReplaceAll(err.Error(), fermata.ErrNoStore.Error(), "it needs the store that the workers use")
	if folder := connect.FolderOf(place); folder != "" { // a URL may have a password
		text += ", and there is none in " + folder
	}
	return agent.Errorf(agent.CodeOf(err), "%s: name it with --store or --data", text)
}

func (c *cli) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "fermata",
		Short: "Durable agents on Temporal",
		Long: `Fermata runs agents as Temporal workflows. When a process ends, another one continues
its runs where they were.

Name a Temporal server with --address, --profile, TEMPORAL_ADDRESS or a profile in
temporal.toml. Without one, run, demo and dev start a server in their own process. Its
data is in the data directory.`,
		Example: `  fermata demo
  fermata run reviewer "Review the last commit"
  fermata dev
  fermata inbox
  fermata interrupt invoice-118 --reason "the client called"`,
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version.Program(),
		// The log needs --verbose, so it is made only when flags are parsed.
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			c.workBegan, c.Log = true, logging.New(c.Err, c.verbose)
			return checkGiven(cmd.Flags())
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.CompletionOptions.HiddenDefaultCmd = true
	f := root.PersistentFlags()
	f.StringVar(&c.Address, "address", "", "Temporal server, HOST:PORT")
	f.StringVar(&c.Namespace, "namespace", "", "Temporal namespace (default \"default\")")
	f.StringVar(&c.Profile, "profile", "", "profile in temporal.toml")
	f.StringVar(&c.TaskQueue, "task-queue", "", "task queue of the runs (default \"fermata\", or where the session of send, fork, retry or chat had its last run; for lists, emit and --query all)")
	f.StringVar(&c.Data, "data", "", "data directory of the embedded server and the store (default the user's)")
	f.StringVar(&c.Store, "store", "", "where transcripts are: a folder, postgres://… or s3://… (default \"store\" in the data directory)")
	f.BoolVar(&c.StoreShared, "store-shared", false, "every worker on every machine sees the store's folder")
	f.BoolVar(&c.verbose, "verbose", false, "log what Temporal and the worker do to standard error")
	for _, g := range c.groups() {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, cmd := range g.commands {
			cmd.GroupID = g.id
			root.AddCommand(cmd)
		}
	}
	root.SetHelpCommandGroupID(groupOperate)
	return root
}

// groupOperate is the group for people who run servers and workers.
const groupOperate = "operate"

// group is a part of the command's help.
type group struct {
	id, title string
	commands  []*cobra.Command // in the order of the help
}

// groups returns all commands.
func (c *cli) groups() []group {
	return []group{
		{"run", "Run agents:", []*cobra.Command{
			c.demoCommand(), c.runCommand(), c.chatCommand(), c.attachCommand(), c.waitCommand(), c.sendCommand(), c.emitCommand(), c.scheduleCommand(),
		}},
		{"hold", "Hold and end runs:", []*cobra.Command{
			c.pauseCommand(), c.interruptCommand(), c.resumeCommand(), c.stopCommand(), c.cancelCommand(), c.handoffCommand(),
		}},
		{"ask", "Answer what runs ask:", []*cobra.Command{
			c.inboxCommand(), c.answerCommand(), c.approveCommand(), c.rejectCommand(), c.tokenCommand(),
		}},
		{"look", "Look at runs:", []*cobra.Command{
			c.lsCommand(), c.showCommand(), c.treeCommand(), c.transcriptCommand(), c.filesCommand(), c.artifactsCommand(), c.notebookCommand(), c.eventsCommand(),
		}},
		{"sessions", "Work with sessions:", []*cobra.Command{
			c.runsCommand(), c.checkpointsCommand(), c.diffCommand(), c.forkCommand(), c.retryCommand(), c.exportCommand(), c.importCommand(), c.deleteCommand(), c.memoryCommand(),
		}},
		{"test", "Evaluate agents:", []*cobra.Command{c.evalCommand()}},
		{groupOperate, "Operate servers and workers:", []*cobra.Command{
			c.devCommand(), c.workerCommand(), c.setupCommand(), c.doctorCommand(), c.preflightCommand(), c.schemaCommand(), c.rolesCommand(), c.lockCommand(), c.skillsCommand(), c.storeCommand(), c.callbackCommand(), c.codecCommand(), c.auditCommand(), c.versionCommand(),
		}},
	}
}

// observe sends traces and metrics to where the environment says. Call it before
// connecting: the client counts, too.
func (c *cli) observe(ctx context.Context) (err error) {
	c.exports, err = exporters.Open(ctx, c.Err, c.Log.Logger)
	c.Meters, c.host.Observer = c.exports.Meters, c.exports.Observer
	return err
}

// console returns the terminal. A command has only one, since two would take lines from
// each other.
func (c *cli) console() *console.Console {
	if c.asker == nil {
		c.asker = console.NewConsole(c.in, c.Out, nil)
	}
	return c.asker
}
