package connect

import (
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/devserver"
)

// LockName is the lock of the embedded server in its data directory.
const LockName = "temporal.lock"

// DataDir is where the embedded server and the store are: the place that a
// devserver without options has, so that programs and commands find the same.
func (c *Connector) DataDir() (string, error) {
	dir := c.Data
	if dir == "" {
		own, err := devserver.DefaultDataDir()
		if err != nil {
			return "", agent.Errorf(agent.CodeInvalidInput, "there is no data directory: %w; name one with --data", err)
		}
		dir = own
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", agent.Errorf(agent.CodeInvalidInput, "the data directory %s: %w", c.Data, err)
	}
	return dir, nil
}

// hasServer reports whether some process has the embedded server of the directory.
// It may be starting, and it may be gone when this returns.
func hasServer(dir string) bool {
	path := filepath.Join(dir, LockName)
	if _, err := os.Stat(path); err != nil {
		return false
	}
	lock := flock.New(path)
	free, err := lock.TryLock()
	if err != nil {
		return false
	}
	// Whoever starts a server in this moment waits for a lock that has no server.
	_ = lock.Close()
	return !free
}
