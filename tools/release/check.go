package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// check checks whether the tree can be released as this version. It changes nothing.
func (r *release) check() (err error) {
	if semver.Canonical(r.version) != r.version {
		return fmt.Errorf("%q is no version such as v1.2.3", r.version)
	}
	if r.modules, err = modules(r.top); err != nil {
		return err
	}
	if err := module.Check(r.modules[0].path, r.version); err != nil {
		return err
	}
	if _, err := os.Stat(r.out); err == nil {
		return fmt.Errorf("%s is there: remove it, or name another folder with -o", r.out)
	}
	changed, err := command(r.top, nil, "git", "status", "--porcelain")
	if err != nil {
		return err
	}
	if changed != "" {
		return fmt.Errorf("the tree has changes: commit them, or put them away\n%s", changed)
	}
	tags, err := command(r.top, nil, "git", "tag", "--list", "v*")
	if err != nil {
		return err
	}
	for _, tag := range strings.Fields(tags) {
		if semver.Compare(r.version, tag) <= 0 {
			return fmt.Errorf("%s is not greater than %s, which is tagged", r.version, tag)
		}
	}
	log, err := os.ReadFile(filepath.Join(r.top, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	if _, err = dated(string(log), ""); err != nil {
		return err
	}
	if err := r.images(); err != nil {
		return err
	}
	_, err = r.signer()
	return err
}

// dated moves what the changelog has under Unreleased to a section with a title.
func dated(log, title string) (string, error) {
	const unreleased = "\n## Unreleased\n"
	before, after, ok := strings.Cut(log, unreleased)
	if !ok {
		return "", errors.New("CHANGELOG.md has no section Unreleased")
	}
	section, _, _ := strings.Cut(after, "\n## ")
	if !strings.Contains(section, "\n- ") {
		return "", errors.New("CHANGELOG.md has nothing under Unreleased: say what is new")
	}
	return before + unreleased + "\n## " + title + "\n" + after, nil
}
