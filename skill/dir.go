package skill

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fermata-agents/fermata/agent"
)

// maxSkills is how many skills the directories of a worker may have together.
const maxSkills = 256

// ReadDirs reads the skills of directories. Each is a skill itself, or has skills as its
// direct subdirectories; others are skipped. It returns all that are sound, sorted by name,
// and all faults joined. Two skills with one name are a fault: the first counts. The code of
// each fault is [agent.CodeInvalidInput], with the path "skills".
func ReadDirs(dirs ...string) (all []*Skill, err error) {
	var faults []error
	for _, dir := range dirs {
		found, bad := find(dir)
		if bad != nil {
			faults = append(faults, bad)
		}
		for _, one := range found {
			if len(all) == maxSkills {
				return sorted(all), errors.Join(append(faults, fault(dir, "there are more than %d skills", maxSkills))...)
			}
			s, bad := Read(one)
			switch twice := slices.IndexFunc(all, func(o *Skill) bool { return s != nil && o.Name == s.Name }); {
			case bad != nil:
				faults = append(faults, bad)
			case twice >= 0 && all[twice].Dir != s.Dir:
				faults = append(faults, fault(one, "%s and %s have the same name", all[twice].Dir, s.Dir))
			case twice < 0:
				all = append(all, s)
			}
		}
	}
	return sorted(all), errors.Join(faults...)
}

func sorted(all []*Skill) []*Skill {
	slices.SortFunc(all, func(a, b *Skill) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// find returns the directories of skills that a directory has, or is.
func find(dir string) (found []string, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, fault(dir, "%w", err)
	}
	if _, err := os.Lstat(filepath.Join(dir, FileName)); err == nil {
		return []string{dir}, nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return nil, fault(dir, "%w", plain(err))
	}
	defer d.Close()
	var links []error
	list, err := d.ReadDir(10 * maxSkills)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fault(dir, "the directory can't be read: %w", plain(err))
	}
	for _, e := range list {
		one := filepath.Join(dir, e.Name())
		switch _, no := os.Lstat(filepath.Join(one, FileName)); {
		case no != nil:
		case e.Type()&fs.ModeSymlink != 0: // whoever wrote the directory chose where it leads
			links = append(links, fault(dir, "%q is a link; name the directory that it leads to under skills instead", e.Name()))
		default:
			found = append(found, one)
		}
	}
	slices.Sort(found)
	return found, errors.Join(links...)
}

// Read reads the skill of a directory. Its error is [agent.CodeInvalidInput].
func Read(dir string) (*Skill, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fault(dir, "%w", err)
	}
	// A root that no path and no link leaves.
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fault(dir, "%w", plain(err))
	}
	defer root.Close()
	s := &Skill{Dir: dir}
	main := ""
	if s.Files, main, s.Remarks, err = list(root); err != nil {
		return nil, fault(dir, "%w", err)
	}
	if err := s.read([]byte(main), filepath.Base(dir)); err != nil {
		return nil, fault(dir, "%w", err)
	}
	s.Digest = digestOf(s.Files)
	if err := errors.Join(s.Check(), s.CheckText()); err != nil {
		return nil, fault(dir, "%w", err)
	}
	return s, nil
}

// list reads all files of a skill. main is the text of SKILL.md. remarks are on what a reader
// does not see of the others.
func list(root *os.Root) (files []File, main string, remarks []string, err error) {
	size := int64(0)
	entries := 0
	err = fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("%q: %w", name, plain(err))
		case name == ".":
			return nil
		case e.IsDir() && (e.Name() == ".git" || e.Name() == "node_modules" || e.Name() == "__pycache__"):
			return fs.SkipDir // not the author's files: they differ from copy to copy
		case strings.Count(name, "/") >= MaxDepth:
			return fmt.Errorf("%q is more than %d directories deep", name, MaxDepth)
		}
		if entries++; entries > 4*MaxFiles {
			return fmt.Errorf("it has more than %d entries", 4*MaxFiles)
		}
		if err := checkPath(name); err != nil {
			return err
		}
		if e.IsDir() {
			return nil
		}
		if len(files) == MaxFiles {
			return fmt.Errorf("it has more than %d files", MaxFiles)
		}
		data, err := read(root, name, MaxFile)
		if err != nil {
			return err
		}
		if size += int64(len(data)); size > MaxBytes {
			return fmt.Errorf("its files have more than %d bytes", MaxBytes)
		}
		if name == FileName {
			main = string(data)
		} else if isText(data) && len(data) <= MaxShown {
			remarks = append(remarks, remarkOn(name, string(data))...)
		}
		files = append(files, File{Path: name, Size: int64(len(data)), Digest: sumOf(data)})
		return nil
	})
	if err == nil && main == "" {
		err = errors.New(FileName + " is missing, or empty")
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return files, main, remarks, err
}

// isText reports whether a file can be shown to a model.
func isText(data []byte) bool { return utf8.Valid(data) && !bytes.ContainsRune(data, 0) }

// remarkOn returns what is not as it looks about a file that a model may read.
func remarkOn(name, text string) []string {
	_, remark, err := seen(strings.TrimPrefix(text, "\uFEFF"))
	switch {
	case err != nil:
		return []string{fmt.Sprintf("%s is not shown to a model: %v", name, err)}
	case remark != "":
		return []string{name + ": " + remark}
	}
	return nil
}

// checkPath refuses names that would not be one word in what a model or a person reads.
func checkPath(name string) error {
	if !utf8.ValidString(name) || len(name) > 256 || strings.ContainsAny(name, "\n\r\t\\") || !isSeen(name) {
		return fmt.Errorf("%+q is no name of a file that can be shown", name)
	}
	return nil
}

// isSeen reports whether a reader sees all of a text.
func isSeen(text string) bool {
	clean, _, err := seen(text)
	return err == nil && clean == text
}

// read reads a regular file of at most a size. A link is followed within the root only.
func read(root *os.Root, name string, most int64) ([]byte, error) {
	// Before it is opened: a pipe would wait for a writer.
	if info, err := root.Stat(name); err != nil {
		return nil, fmt.Errorf("%q: %w; no link may lead out of the skill's directory", name, plain(err))
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%q is no regular file, and no link to one", name)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", name, plain(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, fmt.Errorf("%q: %w", name, plain(err))
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("%q has more than %d bytes", name, most)
	}
	return data, nil
}

// ReadFile returns the text of a file of the skill, as it was when the skill was read. The
// error is [agent.CodeNotFound], [agent.CodeTooLarge], [agent.CodeInvalidInput] for a file
// that is no text or has characters that hide text, [agent.CodeSkillChanged] if the file is another
// one now, or that of the server which does not answer.
func (s *Skill) ReadFile(ctx context.Context, name string) (string, error) {
	name = path.Clean(filepath.ToSlash(name))
	f, ok := s.File(name)
	switch {
	case !ok:
		return "", agent.Errorf(agent.CodeNotFound, "skill %s has no file %q", s.Name, name)
	case f.Size > MaxShown:
		return "", agent.Errorf(agent.CodeTooLarge, "%s of skill %s has %d bytes; at most %d are shown", name, s.Name, f.Size, MaxShown)
	}
	data, err := s.bytes(ctx, f)
	if err != nil {
		return "", err
	}
	if !isText(data) {
		return "", agent.Errorf(agent.CodeInvalidInput, "%s of skill %s is no text", name, s.Name)
	}
	text, _, err := seen(strings.TrimPrefix(string(data), "\uFEFF"))
	if err != nil {
		return "", agent.Errorf(agent.CodeInvalidInput, "%s of skill %s is not shown: %w", name, s.Name, err)
	}
	return text, nil
}

// bytes reads a file of at most [MaxShown] bytes, and compares it with what the worker knows of it.
func (s *Skill) bytes(ctx context.Context, f File) ([]byte, error) {
	if s.origin != nil {
		return s.fetch(ctx, f)
	}
	root, err := os.OpenRoot(s.Dir)
	if err != nil {
		return nil, s.changed(f.Path)
	}
	defer root.Close()
	data, err := read(root, f.Path, MaxShown)
	if err != nil || sumOf(data) != f.Digest {
		return nil, s.changed(f.Path)
	}
	return data, nil
}

func (s *Skill) changed(name string) error {
	return agent.Errorf(agent.CodeSkillChanged, "%s of skill %s is not what the worker read when it started; start the worker again to take the new one", name, s.Name)
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// plain returns an error without the path that it begins with: that of a machine says
// nothing to others.
func plain(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
