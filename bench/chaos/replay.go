package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/worker"
)

// replayed is the result of one replay.
type replayed struct{ Session, Run, Fault string }

// replay is the process of a build that replays histories and prints each result.
func replay(ctx context.Context, arg string) error {
	var p place
	if err := json.Unmarshal([]byte(arg), &p); err != nil {
		return err
	}
	c, err := p.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	o, err := p.options(zap.NewNop())
	if err != nil {
		return err
	}
	const all = 1 << 20
	out := json.NewEncoder(os.Stdout)
	for v, err := range worker.Preflight(ctx, c, o, &worker.PreflightOptions{Closed: all, Query: p.Query}) {
		if err != nil {
			return err
		}
		r := replayed{Session: v.Session, Run: v.Run}
		if err := v.Err(); err != nil {
			r.Fault = err.Error()
		}
		if err := out.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

// replays has the newest build replay every history, and an older build those that pinned
// its revision.
func (a *audit) replays(ctx context.Context) (err error) {
	if a.report.Executions, err = a.replay(ctx, a.builds[len(a.builds)-1], ""); err != nil || len(a.builds) == 1 {
		return err
	}
	older, err := a.replay(ctx, a.builds[0], fmt.Sprintf("TemporalChangeVersion = 'fermata.revision-%d'", loop.Revision))
	a.report.Newer = a.report.Executions - older
	return err
}

func (a *audit) replay(ctx context.Context, build, query string) (n int, err error) {
	p := a.place
	p.Query = query
	arg, err := json.Marshal(p)
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, build, replayCommand, string(arg))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	for each := json.NewDecoder(out); ; n++ {
		var r replayed
		if err := each.Decode(&r); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return n, fmt.Errorf("reading what the replay says: %w", err)
		}
		if r.Fault != "" {
			a.report.find(unreplayed, r.Session, r.Run, "build %s can't replay its history: %s", filepath.Base(build), r.Fault)
		}
	}
	return n, cmd.Wait()
}
