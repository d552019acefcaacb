package workspace

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/confine"
	"github.com/fermata-agents/fermata/internal/worktree"
	"github.com/fermata-agents/fermata/tool"
)

// EndOwn implements [tool.Workspaces].
func (w *Workspace) EndOwn(ctx context.Context, o tool.OwnWorkspace, end agent.WorkspaceEnd) (out agent.WorkspaceOutcome, err error) {
	if !ownName.MatchString(o.Name) || w.own == "" {
		return out, tool.ErrElsewhere
	}
	dir := filepath.Join(w.own, o.Name)
	err = w.locked(ctx, func() error {
		done := filepath.Join(dir, doneFile)
		if out, err = readJSON[agent.WorkspaceOutcome](done); err == nil {
			return w.clean(dir, out)
		}
		m, err := readJSON[made](filepath.Join(dir, madeFile))
		if errors.Is(err, fs.ErrNotExist) {
			return tool.ErrElsewhere
		}
		if err != nil {
			return err
		}
		out = agent.WorkspaceOutcome{Kind: m.Kind, Name: o.Name, Result: agent.WorkspaceDropped}
		switch {
		case end == agent.WorkspaceDrop:
		case m.Kind == agent.WorkspaceDirectory:
			out.Result = agent.WorkspaceKept
		default:
			if err := w.endWorktree(ctx, o, m, end, &out); err != nil {
				return err
			}
		}
		// Before anything is removed: another attempt finds what became of it.
		if err := writeJSON(done, out); err != nil {
			return err
		}
		return w.clean(dir, out)
	})
	return out, w.withoutPaths(err)
}

// clean removes what an ended workspace does not need any more.
func (w *Workspace) clean(dir string, out agent.WorkspaceOutcome) error {
	if out.Kind == agent.WorkspaceDirectory && out.Result == agent.WorkspaceKept {
		return nil
	}
	err := remove(filepath.Join(dir, filesDir))
	if out.Branch == "" {
		err = errors.Join(err, remove(filepath.Join(dir, gitDir)))
	}
	return err
}

// merging says what a merge of a worktree does, before its first file is written.
type merging struct {
	Theirs string `json:"theirs"` // the sub-agent's files
	Ours   string `json:"ours"`   // the parent's
	Merged string `json:"merged"` // the tree of both
}

// endWorktree copies what a worktree has into its repository, and merges it if that is its end.
func (w *Workspace) endWorktree(ctx context.Context, o tool.OwnWorkspace, m made, end agent.WorkspaceEnd, out *agent.WorkspaceOutcome) error {
	dir := filepath.Join(w.own, o.Name)
	repo := worktree.Open(filepath.Join(dir, gitDir))
	record, err := readJSON[merging](filepath.Join(dir, mergeFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	begun := err == nil // by an attempt before this one
	if !begun {
		at := *w
		if err := w.enterOwn(&at, o.Name); err != nil {
			return err
		}
		defer at.leave()
		s := worktree.Snapshot{Files: at.files(), From: m.Base, Ref: "refs/heads/" + branch(o.Name), Message: "The work of " + o.Session, Temp: w.own}
		if record.Theirs, err = repo.Snapshot(ctx, s); err != nil {
			return err
		}
	}
	changes, err := repo.Diff(ctx, m.Base, record.Theirs)
	if err != nil {
		return err
	}
	if len(changes) == 0 {
		out.Result = agent.WorkspaceUnchanged
		return nil
	}
	out.Result, out.Branch, out.Repository = agent.WorkspaceKept, branch(o.Name), filepath.Join(dir, gitDir)
	setPaths(out, changes)
	if end != agent.WorkspaceMerge {
		return nil
	}
	return w.merge(ctx, repo, o, m, record, out)
}

func setPaths(out *agent.WorkspaceOutcome, changes []worktree.Change) {
	out.Paths, out.PathsLeft = nil, 0
	for _, c := range changes {
		addPath(out, c.Path)
	}
}

func addPath(out *agent.WorkspaceOutcome, path string) {
	if len(out.Paths) == agent.MaxWorkspacePaths {
		out.PathsLeft++
		return
	}
	out.Paths = append(out.Paths, strings.ToValidUTF8(path, "\ufffd"))
}

// conflict says that paths prevented a merge.
func conflict(out *agent.WorkspaceOutcome, why string, paths []string) {
	out.Result, out.Error, out.Paths, out.PathsLeft = agent.WorkspaceConflict, why, nil, 0
	for _, path := range paths {
		addPath(out, path)
	}
}

// merge makes a worktree's changes to the parent's files, all or none.
func (w *Workspace) merge(ctx context.Context, repo *worktree.Repo, o tool.OwnWorkspace, m made, record merging, out *agent.WorkspaceOutcome) error {
	base, err := w.base(o.Base)
	if errors.Is(err, tool.ErrElsewhere) {
		conflict(out, "the workspace that it was made from has ended", nil)
		return nil
	}
	if err != nil {
		return err
	}
	defer base.leave()
	begun := record.Merged != ""
	if !begun {
		s := worktree.Snapshot{Files: base.files(), From: m.Base, Ref: "refs/ours", Message: "The workspace when " + o.Session + " ended", Temp: w.own}
		if record.Ours, err = repo.Snapshot(ctx, s); err != nil {
			return err
		}
		var paths []string
		if record.Merged, paths, err = repo.Merge(ctx, record.Ours, record.Theirs); err != nil {
			return err
		}
		if len(paths) > 0 {
			conflict(out, "these files were changed here too", paths)
			return nil
		}
	}
	changes, err := repo.Diff(ctx, record.Ours, record.Merged)
	if err != nil {
		return err
	}
	waiting, err := base.mayApply(changes, begun, out)
	if err != nil || out.Result == agent.WorkspaceConflict && !begun {
		return err
	}
	if !begun {
		if err := writeJSON(filepath.Join(w.own, o.Name, mergeFile), record); err != nil {
			return err
		}
	}
	if err := base.apply(ctx, repo, waiting); err != nil {
		return err
	}
	if out.Result != agent.WorkspaceConflict {
		out.Result, out.Branch, out.Repository = agent.WorkspaceMerged, "", ""
	}
	return nil
}

// mayApply returns the changes that are not made yet. If one can't be made, it sets a conflict.
func (w *Workspace) mayApply(changes []worktree.Change, again bool, out *agent.WorkspaceOutcome) (waiting []worktree.Change, err error) {
	files, fixed := w.files(), w.fixed(true)
	var odd, written []string
	for _, c := range changes {
		place := filepath.FromSlash(c.Path)
		if !c.Plain() || !filepath.IsLocal(place) || files.Skip(c.Path) || w.isFixed(place, fixed) {
			odd = append(odd, c.Path)
			continue
		}
		was, is, err := files.compare(c)
		switch {
		case err != nil:
			return nil, err
		case is:
		case was:
			waiting = append(waiting, c)
		default:
			written = append(written, c.Path)
		}
	}
	switch {
	case len(odd) > 0:
		conflict(out, "these are links, submodules, secrets or files of the worker, which are not merged", odd)
	case len(written) > 0 && again:
		conflict(out, "these files were changed while a killed worker merged; the others are merged", written)
	case len(written) > 0:
		conflict(out, "these files were changed during the merge, or git ignores them here", written)
	}
	return waiting, nil
}

// compare reports whether a file is the one before a change, or the one after it.
func (f files) compare(c worktree.Change) (was, is bool, err error) {
	opened, err := f.Open(c.Path)
	if err != nil {
		return false, false, err
	}
	if opened != nil {
		defer opened.Close()
	}
	return c.Is(opened)
}

// isFixed reports whether no tool may write a place.
func (w *Workspace) isFixed(place string, fixed confine.Places) bool {
	dir, err := w.walk(filepath.Dir(place), false)
	if err != nil {
		return false // it does not exist yet, or apply refuses it
	}
	defer dir.Close()
	info, err := dir.Lstat(filepath.Base(place))
	if err != nil {
		info = nil
	}
	return touches(fixed, dir, filepath.Base(place), info) != nil
}

// apply writes changes as the tools write files.
func (w *Workspace) apply(ctx context.Context, repo *worktree.Repo, changes []worktree.Change) error {
	var ids []string
	var files []worktree.Change
	for _, c := range changes {
		if c.NewID == "" {
			if err := w.removeFile(filepath.FromSlash(c.Path)); err != nil {
				return err
			}
			continue
		}
		ids, files = append(ids, c.NewID), append(files, c)
	}
	return repo.Blobs(ctx, ids, func(i int, body io.Reader) error {
		place := filepath.FromSlash(files[i].Path)
		return w.replace(place, body, w.modeAfter(place, files[i]))
	})
}

// modeAfter returns the mode of a file after a change. One that exists keeps its own, which may be
// narrower than git's.
func (w *Workspace) modeAfter(place string, c worktree.Change) fs.FileMode {
	const executable = "100755"
	info, err := w.root.Lstat(place)
	switch {
	case err != nil && c.NewMode == executable:
		return 0o755
	case err != nil:
		return 0
	case c.NewMode == c.OldMode:
		return info.Mode().Perm()
	case c.NewMode == executable:
		return info.Mode().Perm() | 0o100
	}
	return info.Mode().Perm() &^ 0o111
}

// removeFile removes a file, and the directories that are empty then.
func (w *Workspace) removeFile(place string) error {
	dir, err := w.walk(filepath.Dir(place), false)
	if err != nil {
		return err
	}
	err = dir.Remove(filepath.Base(place))
	dir.Close()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for up := filepath.Dir(place); up != "."; up = filepath.Dir(up) {
		if w.root.Remove(up) != nil {
			break
		}
	}
	return nil
}

var _ tool.Workspaces = (*Workspace)(nil)
