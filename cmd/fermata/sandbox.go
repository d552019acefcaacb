package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/audit"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
)

// keyFiles begin the names of variables that may name files with keys, and keyNames end those
// of others, such as ANTHROPIC_API_KEY_FILE.
var (
	keyFiles = []string{"FERMATA_", "TEMPORAL_", "AWS_", "AZURE_", "GOOGLE_"}
	keyNames = []string{"_KEY_FILE", "_KEYS_FILE", "_TOKEN_FILE", "_SECRET_FILE", "_PASSWORD_FILE"}
)

// namesKeys reports whether a variable may name a file with keys.
func namesKeys(variable string) bool {
	return slices.ContainsFunc(keyFiles, func(start string) bool { return strings.HasPrefix(variable, start) }) ||
		slices.ContainsFunc(keyNames, func(end string) bool { return strings.HasSuffix(variable, end) })
}

// private are the paths that are this program's own, and that no tool of its agents may
// touch: the data directory, the store, and what the environment names of files.
func (c *cli) private() (list []string, err error) {
	dir, err := c.DataDir()
	if err != nil {
		return nil, err
	}
	list = append(list, dir)
	place, err := c.StorePlace()
	if err != nil {
		return nil, err
	}
	if !strings.Contains(place, "://") {
		list = append(list, place)
	}
	if c.policy != "" {
		policy, err := filepath.Abs(c.policy)
		if err != nil {
			return nil, err
		}
		list = append(list, policy)
	}
	if record := os.Getenv(env.Audit); record != "" { // it may not be there yet
		if record, err = filepath.Abs(record); err != nil {
			return nil, err
		}
		list = append(list, record, audit.LockPath(record))
	}
	for _, pair := range os.Environ() {
		name, path, _ := strings.Cut(pair, "=")
		if !namesKeys(name) {
			continue
		}
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			continue
		}
		if path, err = filepath.Abs(path); err != nil {
			return nil, err
		}
		list = append(list, path)
	}
	if config, err := os.UserConfigDir(); err == nil {
		list = append(list, filepath.Join(config, "temporalio", "temporal.toml"))
	}
	return list, nil
}

// unheldRemedy is what to do about a program that nothing holds.
const unheldRemedy = "leave confine out, or run the worker in a container or a virtual machine of its own"

// unheld says which programs nothing holds; empty if none.
func unheld(f *agentsfile.File) string {
	programs := f.UnconfinedPrograms()
	if len(programs) == 0 {
		return ""
	}
	return "nothing holds " + strings.Join(programs, " and ") + ": they may do all that the worker's user may, and rewrite " + f.Path + " and what it names"
}
