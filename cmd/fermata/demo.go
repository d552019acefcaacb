package main

import (
	"context"
	"embed"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/follow"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/localworker"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/render"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/version"
	"github.com/fermata-agents/fermata/live"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/workspace"
	"github.com/fermata-agents/fermata/worker"
)

// demoFiles are the project that the demo's agent fixes, and its model's script.
//
//go:embed demo
var demoFiles embed.FS

// The demo's agent.
const (
	demoAgent = "mender"
	demoModel = "script:demo"
	demoTask  = "The till charges too much. Find out why, mend it, and show that the test passes."
)

func (c *cli) demoCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch an agent fix a bug, without an API key",
		Long: `Demo lets an agent fix a bug in a small project, in a temporary directory. Temporal,
the files and the shell are real. The model's answers come from a script, so the demo
needs no API key and costs nothing. It takes a few seconds and leaves nothing running.`,
		Example: `  fermata demo`,
		Args:    exactArgs(0, "no argument"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.demo(cmd.Context()) },
	}
	c.jsonFlag(cmd, "print each event as a line of JSON, and then the outcome")
	return cmd
}

func (c *cli) demo(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "fermata-demo-")
	if err != nil {
		return agent.Errorf(agent.CodeNotWritten, "a temporary directory for the demo: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := unpackDemo(dir); err != nil {
		return agent.Errorf(agent.CodeNotWritten, "unpacking the demo: %w", err)
	}
	// A short id is enough: the demo's server has only demos, and people type it.
	session := "demo-" + uuid.NewString()[:8]
	// A queue of its own: other workers' tools must not touch this workspace, and this
	// worker must not touch other runs.
	c.TaskQueue = session
	s, data, err := c.StartDemo(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	hub := live.NewHub()
	w, err := c.startDemoWorker(ctx, s, dir, hub)
	if err != nil {
		return err
	}
	// Deferred last, so the worker stops before its server.
	defer c.host.Stop(w)
	return c.demoRun(ctx, s, session, data, hub)
}

func unpackDemo(dir string) error {
	files, err := fs.Sub(demoFiles, "demo")
	if err != nil {
		return err
	}
	return os.CopyFS(dir, files)
}

// startDemoWorker starts a worker for the demo's agent.
func (c *cli) startDemoWorker(ctx context.Context, s *connect.Server, dir string, hub *live.Hub) (*localworker.Worker, error) {
	script, err := testsuite.LoadScript(filepath.Join(dir, "script.yaml"))
	if err != nil {
		return nil, err
	}
	store, err := c.OpenStore(ctx)
	if err != nil {
		return nil, err
	}
	place, err := workspace.Open(filepath.Join(dir, "project"), &workspace.Options{
		// The temporary directory is deleted, so running as root can only harm these files.
		Home: filepath.Join(dir, "home"), AsRoot: true, Confine: tool.ConfineWherePossible, // its commands come from the script
	})
	if err != nil {
		return nil, err
	}
	return localworker.Run(ctx, s, &worker.Options{
		TaskQueue: c.Queue(), Tools: place.Tools(), Models: map[string]model.Model{demoModel: script}, Store: store,
		Logger: c.Log.Logger, Temporal: localworker.StopsWithin(runPatience), Live: hub, Build: version.Program(),
		Agents: []agent.Definition{{
			Name: demoAgent, Model: demoModel, Instructions: "You mend programs. Look before you write, and let the test decide.",
			Tools:  []string{workspace.ReadTool, workspace.GrepTool, workspace.WriteTool, workspace.ShellTool},
			Limits: agent.Limits{Turns: 12},
		}},
	}, place)
}

func (c *cli) demoRun(ctx context.Context, s *connect.Server, session, data string, hub *live.Hub) error {
	runs, err := c.Client(ctx, s)
	if err != nil {
		return err
	}
	// Subscribed before the start: pieces that come first would be lost.
	pieces, err := hub.Subscribe(ctx, session)
	if err != nil {
		return err
	}
	defer pieces.Close()
	run, err := runs.Start(ctx, demoAgent, demoTask, &fermata.StartOptions{Session: session})
	if err != nil {
		return err
	}
	// The printer needs no run; the JSON lines name it on every line.
	var tell follow.Listener = jsonLines{c, run, &render.ProgressOrder{}}
	if !c.JSON {
		tell = c.Printer()
	}
	tell.Note("Temporal, the files and the shell are real; the model answers from a script.")
	tell.Note("session %s · task: %s", session, demoTask)
	o, err := follow.Follow(ctx, run, &follow.State{}, pieces, tell, func() bool { return true }, follow.Until{})
	if err != nil {
		return err
	}
	if err := c.printEnd(ctx, nil, o, tell); err != nil || c.JSON {
		return err
	}
	c.Print("\nAll of it is recorded. To look at it:")
	c.Print("  fermata transcript %s", session)
	// In memory nothing remains to look at.
	if data != "" {
		c.Print("  fermata dev --data %s    # the demo's Temporal again; then, in another terminal:", connect.ShellWord(data))
		c.Print("  temporal workflow show -w %s    # or Temporal's UI: docker run --network host -e TEMPORAL_ADDRESS=127.0.0.1:7233 temporalio/ui", session)
	}
	c.Print("To run an agent of your own, write fermata.yaml (fermata doctor says what is missing):")
	c.Print("  agents: {reviewer: {model: anthropic/claude-sonnet-5, instructions: You review code., tools: [fs_read, fs_grep]}}")
	c.Print("  fermata run reviewer \"Review this directory\"")
	return nil
}
