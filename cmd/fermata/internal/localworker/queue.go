package localworker

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
)

// queueOwner returns the file that records which agents file the task queue was last used
// with. Runs of one directory must not continue with the tools and in the workspace of
// another.
func (h *Host) queueOwner() (string, error) {
	dir, err := h.DataDir()
	return filepath.Join(dir, "queues", url.PathEscape(h.Queue())), err
}

// ClaimQueue makes an agents file the owner of the task queue, on the server of the data
// directory. It returns [agent.CodeBusy] while runs of another file's agents exist there.
func (h *Host) ClaimQueue(ctx context.Context, s *connect.Server, runs *fermata.Client, f *agentsfile.File) error {
	// The record is in the data directory, so it covers only that directory's server.
	if s.Embedded == nil {
		return nil
	}
	record, err := h.queueOwner()
	if err != nil {
		return err
	}
	mine := absPath(f)
	if other := owner(record); other != "" && other != mine {
		// Another worker polls with the other file: it would take these runs.
		if names, err := h.Pollers(ctx, s); err != nil || len(names) > 0 {
			return errors.Join(err, h.SameAgents(s, f))
		}
		live, err := h.liveSessions(ctx, runs)
		if err != nil {
			return err
		}
		if len(live) > 0 {
			return agent.Errorf(agent.CodeBusy, "the task queue %s has live runs of the agents in %s (%s): start %s, and let them end or end them with %s in another terminal. Or keep this project apart with --data DIR, or with another --task-queue",
				h.Queue(), other, strings.Join(live, ", "), h.startLine(s, other), h.CommandLine("cancel SESSION"))
		}
	}
	// Written after the checks: the record must not change while other runs are live.
	err = os.MkdirAll(filepath.Dir(record), 0o700)
	if err == nil {
		err = os.WriteFile(record, []byte(mine+"\n"), 0o600)
	}
	if err != nil {
		return agent.Errorf(agent.CodeNotWritten, "the data directory: %w", err)
	}
	return nil
}

// startLine returns the command line that works on the runs of another file's agents. The server of
// this process ends with it; any other server runs already, and needs a worker.
func (h *Host) startLine(s *connect.Server, file string) string {
	verb := "worker"
	if s.InProcess() {
		verb = "dev"
	}
	return h.CommandLine("%s --agents %s", verb, connect.ShellWord(file))
}

// A missing record means that nobody has used the queue.
func owner(record string) string {
	text, err := os.ReadFile(record)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// SameAgents returns [agent.CodeBusy] if the worker at the task queue has another file's
// agents than this directory's.
func (h *Host) SameAgents(s *connect.Server, f *agentsfile.File) error {
	if s.Embedded == nil || f == nil {
		return nil
	}
	record, err := h.queueOwner()
	if err != nil {
		return err
	}
	other := owner(record)
	if other == "" || other == absPath(f) {
		return nil
	}
	return agent.Errorf(agent.CodeBusy, "the worker at the task queue %s has the agents of %s, not those of %s: name its file with --agents %s, use another --task-queue, or stop that worker", h.Queue(), other, absPath(f), connect.ShellWord(other))
}

// absPath returns the absolute path of an agents file.
func absPath(f *agentsfile.File) string { return filepath.Join(f.Dir, filepath.Base(f.Path)) }

// liveSessions lists some sessions whose runs are not at an end, on the task queue.
func (h *Host) liveSessions(ctx context.Context, runs *fermata.Client) (live []string, err error) {
	const enough = 3
	for l, err := range runs.List(ctx, &fermata.ListOptions{TaskQueue: h.Queue(), Query: "ExecutionStatus = 'Running'"}) {
		if err != nil {
			return nil, err
		}
		// A few names are enough for an error.
		if live = append(live, l.Session); len(live) == enough {
			return append(live, "…"), nil
		}
	}
	return live, nil
}
