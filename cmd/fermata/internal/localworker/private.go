package localworker

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/audit"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
)

// keyFiles are beginnings of names of variables that may name files with keys. keyNames
// are ends of others, such as ANTHROPIC_API_KEY_FILE.
var (
	keyFiles = []string{"FERMATA_", "TEMPORAL_", "AWS_", "AZURE_", "GOOGLE_"}
	keyNames = []string{"_KEY_FILE", "_KEYS_FILE", "_TOKEN_FILE", "_SECRET_FILE", "_PASSWORD_FILE"}
)

// namesKeys reports whether a variable may name a file with keys.
func namesKeys(variable string) bool {
	return slices.ContainsFunc(keyFiles, func(start string) bool { return strings.HasPrefix(variable, start) }) ||
		slices.ContainsFunc(keyNames, func(end string) bool { return strings.HasSuffix(variable, end) })
}

// Private returns the paths of this program that no tool of its agents may touch: the
// data directory, the store, and the files that the environment names.
func (h *Host) Private() (list []string, err error) {
	dir, err := h.DataDir()
	if err != nil {
		return nil, err
	}
	list = append(list, dir)
	place, err := h.StorePlace()
	if err != nil {
		return nil, err
	}
	// A URL is no path that tools could open.
	if !strings.Contains(place, "://") {
		list = append(list, place)
	}
	if h.Policy != "" {
		policy, err := filepath.Abs(h.Policy)
		if err != nil {
			return nil, err
		}
		list = append(list, policy)
	}
	if record := os.Getenv(env.Audit); record != "" { // the file may not exist yet
		if record, err = filepath.Abs(record); err != nil {
			return nil, err
		}
		// The lock is beside the file: a program that can hold it could block the audit.
		list = append(list, record, audit.LockPath(record))
	}
	for _, pair := range os.Environ() {
		name, path, _ := strings.Cut(pair, "=")
		if !namesKeys(name) {
			continue
		}
		// Sockets and devices are no files with keys, and folders would hide too much.
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			continue
		}
		if path, err = filepath.Abs(path); err != nil {
			return nil, err
		}
		list = append(list, path)
	}
	// Profiles there may have API keys.
	if config, err := os.UserConfigDir(); err == nil {
		list = append(list, filepath.Join(config, "temporalio", "temporal.toml"))
	}
	return list, nil
}
