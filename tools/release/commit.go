package main

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// clone clones the tree's last commit, with its branch and tags.
func (r *release) clone() error {
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	_, err := command(r.out, nil, "git", "clone", "--quiet", r.top, "source")
	return err
}

func (r *release) tags() (names []string) {
	for _, m := range r.modules {
		names = append(names, m.tag(r.version))
	}
	return names
}

// commit makes the release's commit and tags, and after it the commit with which work
// continues. It publishes the modules one by one: a module that requires another needs
// the other's digest.
func (r *release) commit() error {
	changelog := filepath.Join(r.source(), "CHANGELOG.md")
	log, err := os.ReadFile(changelog)
	if err != nil {
		return err
	}
	text, err := dated(string(log), r.version[1:]+" - "+r.date.Format("2006-01-02"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(changelog, []byte(text), 0o644); err != nil {
		return err
	}
	if _, err := r.git("commit", "--quiet", "--all", "--message", "Release "+r.version); err != nil {
		return err
	}
	env, err := r.environment("published")
	if err != nil {
		return err
	}
	var pinned []string
	for _, m := range r.modules {
		if len(m.requires(r.modules)) > 0 {
			pinned = append(pinned, m.dir)
			if err := r.require(m, env); err != nil {
				return err
			}
		}
		if err := r.publish(m); err != nil {
			return err
		}
	}
	for _, tag := range r.tags() {
		if _, err := r.git("tag", "--annotate", "--message", "Release "+r.version, tag); err != nil {
			return err
		}
	}
	// Only in the release's commit the modules require each other by version.
	back := append([]string{"checkout", "HEAD~", "--"}, pinned...)
	if _, err := r.git(back...); err != nil {
		return err
	}
	_, err = r.git("commit", "--quiet", "--all", "--message", "Go on after "+r.version+": modules find each other by path")
	return err
}

// require makes a module require the others by version, as part of the release's commit.
func (r *release) require(m *mod, env []string) error {
	dir := filepath.Join(r.source(), m.dir)
	text, err := m.pin(r.modules, r.version)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), text, 0o644); err != nil {
		return err
	}
	if _, err := command(dir, env, "go", "mod", "tidy"); err != nil {
		return err
	}
	_, err = r.git("commit", "--quiet", "--all", "--amend", "--no-edit")
	return err
}

// publish puts a module from the last commit into the proxy.
func (r *release) publish(m *mod) error {
	escaped, err := module.EscapePath(m.path)
	if err != nil {
		return err
	}
	dir := filepath.Join(r.proxy(), filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(dir, r.version+".zip"))
	if err != nil {
		return err
	}
	defer file.Close()
	if err := zip.CreateFromVCS(file, module.Version{Path: m.path, Version: r.version}, r.source(), "HEAD", m.dir); err != nil {
		return err
	}
	gomod, err := os.ReadFile(filepath.Join(r.source(), m.dir, "go.mod"))
	if err != nil {
		return err
	}
	info, err := json.Marshal(map[string]any{"Version": r.version, "Time": r.date})
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{"list": []byte(r.version + "\n"), r.version + ".mod": gomod, r.version + ".info": info} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	return file.Close()
}

func (r *release) proxy() string { return filepath.Join(r.out, "proxy") }

// work returns the folder for what is not kept.
func (r *release) work() string { return filepath.Join(r.out, "work") }

func (r *release) gopath(name string) string { return filepath.Join(r.work(), name) }

// environment returns the environment of a go command that knows our modules only from
// the proxy. It ignores the user's settings, and has a GOPATH that has never seen the
// modules. Other people's modules come from the user's module cache, so that they are not
// downloaded again.
func (r *release) environment(name string) ([]string, error) {
	gopath := r.gopath(name)
	cache := filepath.Join(gopath, "pkg", "mod")
	ours := path.Dir(r.modules[0].path)
	for _, part := range []string{"", filepath.Join("cache", "download")} {
		if err := borrow(filepath.Join(r.cache, part), filepath.Join(cache, part), filepath.FromSlash(ours)); err != nil {
			return nil, err
		}
	}
	return []string{
		"GOENV=off", "GOWORK=off", "GOFLAGS=-modcacherw", "CGO_ENABLED=0", "GOBIN=",
		"GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOFIPS140=off", "GOSUMDB=" + r.sums,
		"GOPATH=" + gopath, "GOMODCACHE=" + cache,
		"GOPROXY=file://" + r.proxy() + "," + r.proxies, "GONOPROXY=none", "GONOSUMDB=" + ours,
	}, nil
}

// borrow makes a folder with links to everything in another one, except for one path.
func borrow(from, to, without string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	first, rest, deeper := strings.Cut(without, string(filepath.Separator))
	for _, e := range entries {
		source, link := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		switch {
		case e.Name() == first && deeper:
			err = borrow(source, link, rest)
		case e.Name() != first && e.Name() != "cache":
			err = os.Symlink(source, link)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
