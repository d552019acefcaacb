package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// release is one release in progress.
type release struct {
	version string // vX.Y.Z
	top     string // the tree to release, which is not changed
	out     string // the folder for the result
	quick   bool
	key     string // the file of the key that signs; empty only if quick
	// date is the date of the release's commits and tags.
	date    time.Time
	modules []*mod // each after those that it requires
	// proxies, cache and sums are the user's GOPROXY, GOMODCACHE and GOSUMDB.
	proxies, cache, sums string
}

func main() {
	r := &release{date: time.Now().UTC().Truncate(time.Second)}
	flag.StringVar(&r.top, "C", "..", "the `folder` of the tree")
	flag.StringVar(&r.out, "o", "", "the `folder` to make; fermata-VERSION beside the tree if empty")
	flag.BoolVar(&r.quick, "quick", false, "this machine's platform only, and both builds with one build cache")
	flag.StringVar(&r.key, "key", "", "the `file` of the Ed25519 key that signs, in PEM")
	flag.Usage = func() {
		fmt.Fprintf(os.Stderr, "usage: release [flags] VERSION\n\n  cd tools && GOWORK=off go run ./release -key release.key v0.2.0\n\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	r.version = flag.Arg(0)
	if err := r.run(); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func (r *release) run() error {
	if err := r.prepare(); err != nil {
		return err
	}
	began := time.Now()
	for _, step := range []struct {
		say string
		do  func() error
	}{
		{"checks", r.check},
		{"clone", r.clone},
		{"commit, tags and module proxy", r.commit},
		{"binaries", r.binaries},
		{"a module of somebody else's", r.outsider},
		{"signature", r.sign},
	} {
		fmt.Printf("-- %s (%.0f s)\n", step.say, time.Since(began).Seconds())
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.say, err)
		}
	}
	if err := os.RemoveAll(r.work()); err != nil {
		return err
	}
	fmt.Printf("-- done (%.0f s). Look at it, and then:\n\n", time.Since(began).Seconds())
	fmt.Printf("git -C %s push --atomic WHERE HEAD %s\n", r.source(), strings.Join(r.tags(), " "))
	return nil
}

// prepare finds out where everything is.
func (r *release) prepare() (err error) {
	if r.top, err = filepath.Abs(r.top); err != nil {
		return err
	}
	if r.out == "" {
		r.out = filepath.Join(filepath.Dir(r.top), "fermata-"+r.version)
	}
	if r.out, err = filepath.Abs(r.out); err != nil {
		return err
	}
	said, err := command(r.top, nil, "go", "env", "GOPROXY", "GOMODCACHE", "GOSUMDB")
	if err != nil {
		return err
	}
	settings := strings.Split(said, "\n")
	r.proxies, r.cache, r.sums = settings[0], settings[1], settings[2]
	return nil
}

func (r *release) source() string { return filepath.Join(r.out, "source") }

// git runs a git command in the clone, with the release's date.
func (r *release) git(args ...string) (string, error) {
	at := r.date.Format(time.RFC3339)
	return command(r.source(), []string{"GIT_AUTHOR_DATE=" + at, "GIT_COMMITTER_DATE=" + at}, "git", args...)
}

// command runs a program in a folder and returns its output without the last line end.
// The error contains its error output.
func command(dir string, env []string, name string, args ...string) (string, error) {
	c := exec.Command(name, args...)
	c.Dir = dir
	c.Env = append(os.Environ(), env...)
	var out, complaint bytes.Buffer
	c.Stdout, c.Stderr = &out, &complaint
	err := c.Run()
	if err != nil {
		err = fmt.Errorf("%s %s in %s: %w", name, strings.Join(args, " "), dir, errors.Join(err, errors.New(complaint.String()+out.String())))
	}
	return strings.TrimSuffix(out.String(), "\n"), err
}
