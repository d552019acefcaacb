package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/worktree"
	"github.com/fermata-agents/fermata/tool"
)

// A sub-agent's own workspace is the directory "files" in one with its name. Beside it lie what only
// the runtime writes: a worktree's repository, which the sub-agent's commands may read, and records.
const (
	filesDir  = "files"
	gitDir    = "git"
	madeFile  = "made.json"
	mergeFile = "merge.json" // once a merge has begun
	doneFile  = "done.json"  // once it has ended
	newDirs   = ".new-"      // what is being made
)

// ownName is the form of a name. It comes from the history, so it is checked before it is in a path.
var ownName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}-[0-9a-f]{12}$`)

// made says what a workspace was made of.
type made struct {
	Kind agent.WorkspaceKind `json:"kind"`
	// Base is the commit that the worktree began with.
	Base string `json:"base,omitempty"`
}

func ownRoot(o *Options, real string) string {
	if o.Own != "" {
		return o.Own
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "fermata", "workspaces", digest(real))
}

// CheckOwn implements [tool.Workspaces].
func (w *Workspace) CheckOwn(kind agent.WorkspaceKind) error {
	if w.own == "" {
		return agent.Errorf(agent.CodeNotSetUp, "there is no cache directory for sub-agents' workspaces: name a directory (workspaces in the agents file, Options.Own in Go)")
	}
	if err := os.MkdirAll(w.own, 0o700); err != nil {
		return agent.Errorf(agent.CodeNotSetUp, "the directory for sub-agents' workspaces can't be made: %w", err)
	}
	own, err := filepath.EvalSymlinks(w.own)
	if err != nil {
		return agent.Errorf(agent.CodeNotSetUp, "the directory for sub-agents' workspaces: %w", err)
	}
	for _, dir := range append([]string{w.real}, slices.Concat(w.opts.Write, w.opts.ExternalRoots)...) {
		if rel, err := filepath.Rel(dir, own); err == nil && filepath.IsLocal(rel) {
			return agent.Errorf(agent.CodeInvalidInput, "sub-agents' workspaces in %s could be written by other agents' tools, since these may write in %s: name another directory", own, dir)
		}
	}
	if kind != agent.WorkspaceWorktree {
		return nil
	}
	return worktree.Check()
}

// placed returns the workspace in which a call works. Close it after use.
func (w *Workspace) placed(call *tool.Call) (*Workspace, error) {
	if call == nil || call.Workspace == "" && len(call.Env) == 0 {
		return w, nil
	}
	at := *w
	at.env, at.owned = call.Env, nil
	if call.Workspace == "" {
		return &at, nil
	}
	if err := w.enterOwn(&at, call.Workspace); err != nil {
		return nil, err
	}
	return &at, nil
}

// enterOwn makes a copy of w work in a sub-agent's own workspace.
func (w *Workspace) enterOwn(at *Workspace, name string) error {
	if !ownName.MatchString(name) || w.own == "" {
		return tool.ErrElsewhere
	}
	dir := filepath.Join(w.own, name)
	real, err := filepath.EvalSymlinks(filepath.Join(dir, filesDir))
	if err != nil {
		return tool.ErrElsewhere
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return tool.ErrElsewhere
	}
	at.root, at.owned = root, root
	at.given, at.real = filepath.Join(dir, filesDir), real
	if git := filepath.Join(dir, gitDir); isDir(git) {
		at.opts.Read = slices.Concat(w.opts.Read, []string{git})
	}
	return nil
}

// leave closes what placed has opened.
func (w *Workspace) leave() {
	if w.owned != nil {
		w.owned.Close()
	}
}

func isDir(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

// inPlace makes a tool's function work where its call works.
func inPlace[In any](w *Workspace, do func(*Workspace, context.Context, *tool.Call, In) (string, error)) func(context.Context, *tool.Call, In) (string, error) {
	return func(ctx context.Context, call *tool.Call, in In) (string, error) {
		at, err := w.placed(call)
		if err != nil {
			return "", err
		}
		defer at.leave()
		return do(at, ctx, call, in)
	}
}

// Dir returns the directory in which a call works, for tools of your own. The error is
// [tool.ErrElsewhere] if it is not on this machine; return it, and another worker makes the call.
func (w *Workspace) Dir(call *tool.Call) (string, error) {
	at, err := w.placed(call)
	if err != nil {
		return "", err
	}
	at.leave()
	return at.real, nil
}

// locked calls do while no other process makes or ends a workspace here: a merge that is half written
// must not be copied, and a second one must begin with what the first has written.
func (w *Workspace) locked(ctx context.Context, do func() error) error {
	if err := os.MkdirAll(w.own, 0o700); err != nil {
		return err
	}
	l := flock.New(filepath.Join(w.own, ".lock"))
	if _, err := l.TryLockContext(ctx, 20*time.Millisecond); err != nil {
		return err
	}
	defer l.Close()
	return do()
}

// MakeOwn implements [tool.Workspaces].
func (w *Workspace) MakeOwn(ctx context.Context, o tool.OwnWorkspace) error {
	if !ownName.MatchString(o.Name) {
		return agent.Errorf(agent.CodeInvalidInput, "%q is no name of a workspace", o.Name)
	}
	if err := w.CheckOwn(o.Kind); err != nil {
		return err
	}
	return w.withoutPaths(w.locked(ctx, func() error {
		w.removeOld()
		dir := filepath.Join(w.own, o.Name)
		if _, err := os.Stat(filepath.Join(dir, filesDir)); err == nil {
			return nil // an attempt before this one has made it
		}
		temp, err := os.MkdirTemp(w.own, newDirs)
		if err != nil {
			return err
		}
		defer remove(temp)
		if err := w.fill(ctx, temp, dir, o); err != nil {
			return err
		}
		if err := ended(ctx); err != nil { // nobody waits for it any more
			return err
		}
		os.RemoveAll(dir) // of a run that was reset to before its end
		return os.Rename(temp, dir)
	}))
}

// withoutPaths returns an error that a model may read: without paths of this machine.
func (w *Workspace) withoutPaths(err error) error {
	if err == nil || errors.Is(err, tool.ErrElsewhere) {
		return err
	}
	text := strings.NewReplacer(w.own, "(workspaces)", w.real, "(workspace)", os.TempDir(), "(temp)").Replace(err.Error())
	return agent.Errorf(agent.CodeOf(err), "%s", text)
}

// fill makes a workspace in temp, which is renamed to dir when all of it is there.
func (w *Workspace) fill(ctx context.Context, temp, dir string, o tool.OwnWorkspace) error {
	files := filepath.Join(temp, filesDir)
	if err := os.Mkdir(files, 0o755); err != nil {
		return err
	}
	m := made{Kind: o.Kind}
	if o.Kind == agent.WorkspaceWorktree {
		base, err := w.base(o.Base)
		if err != nil {
			return err
		}
		defer base.leave()
		repo, err := worktree.Create(filepath.Join(temp, gitDir))
		if err != nil {
			return err
		}
		if m.Base, err = repo.Snapshot(ctx, worktree.Snapshot{Files: base.files(), Ref: worktree.Start, Message: "The workspace when " + o.Session + " began", Temp: temp}); err != nil {
			return err
		}
		if err := repo.CheckOut(ctx, m.Base, files); err != nil {
			return err
		}
		// For the sub-agent's commands; the runtime does not read it.
		if err := os.WriteFile(filepath.Join(files, ".git"), []byte("gitdir: "+filepath.Join(dir, gitDir)+"\n"), 0o644); err != nil {
			return err
		}
	}
	return writeJSON(filepath.Join(temp, madeFile), m)
}

// base returns the place that a worktree copies. An empty name is the workspace itself.
func (w *Workspace) base(name string) (*Workspace, error) {
	if name == "" {
		return w, nil
	}
	at := *w
	return &at, w.enterOwn(&at, name)
}

func branch(name string) string { return "fermata/" + name }

// Ages after which what is left of workspaces is removed.
const (
	oldNew  = 24 * time.Hour      // what a killed worker was making
	oldDone = 30 * 24 * time.Hour // what became of an ended one
)

// removeOld removes what killed workers and ended workspaces have left.
func (w *Workspace) removeOld() {
	entries, err := os.ReadDir(w.own)
	if err != nil {
		return
	}
	for _, e := range entries {
		dir := filepath.Join(w.own, e.Name())
		if strings.HasPrefix(e.Name(), newDirs) && olderThan(dir, oldNew) {
			remove(dir)
		}
		if done := filepath.Join(dir, doneFile); ownName.MatchString(e.Name()) && olderThan(done, oldDone) {
			if !isDir(filepath.Join(dir, filesDir)) && !isDir(filepath.Join(dir, gitDir)) { // nothing was kept
				remove(dir)
			}
		}
	}
}

func olderThan(path string, age time.Duration) bool {
	info, err := os.Stat(path)
	return err == nil && time.Since(info.ModTime()) > age
}

// remove deletes a directory with all that is in it, whatever modes a command gave to directories.
func remove(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if e != nil && e.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

func writeJSON(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	temp := path + ".new"
	if err := os.WriteFile(temp, data, 0o600); err != nil {
		return err
	}
	return os.Rename(temp, path)
}

func readJSON[T any](path string) (v T, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return v, fmt.Errorf("%s: %w", path, err)
	}
	return v, nil
}
