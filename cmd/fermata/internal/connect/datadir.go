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

// DataDir returns the directory of the embedded server and the store. It is the one of a
// devserver without options, so programs and commands find the same.
func (c *Connector) DataDir() (string, error) {
	dir := c.Data
	if dir == "" {
		own, err := devserver.DefaultDataDir()
		if err != nil {
			return "", agent.Errorf(agent.CodeInvalidInput, "there is no data directory: %w; name one with --data", err)
		}
		dir = own
	}
	// Absolute, because it is shown to users and compared between processes.
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", agent.Errorf(agent.CodeInvalidInput, "the data directory %s: %w", c.Data, err)
	}
	return dir, nil
}

// hasServer reports whether some process runs the embedded server of the directory. It
// may still be starting, and may be gone when hasServer returns.
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
	// For a moment this process holds the lock. A process that starts a server then waits for it.
	_ = lock.Close()
	return !free
}
