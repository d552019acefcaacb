package devserver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

const (
	lockName    = "temporal.lock"
	addressName = "temporal.addr"

	// peerPatience limits the wait for an owner that has the lock but does not answer. It
	// is starting (some hundred milliseconds) or stopping (about one second). If it
	// hangs, the user has to end it.
	peerPatience = 15 * time.Second

	// peerInterval is the pause between two looks at the lock and the address.
	peerInterval = 20 * time.Millisecond

	// peerAnswer limits one query to an address that may be dead.
	peerAnswer = 2 * time.Second
)

// A claim is the right to run the only server on a data directory. It is a lock of the
// operating system, so it ends with its process, however that ends.
type claim struct {
	lock *flock.Flock
	dir  string
}

// A peer is a server that another process, or another part of this one, runs on the same
// data.
type peer struct {
	addr string

	// cluster is the id in the server's database. An address file of a killed process may
	// name a port that now belongs to a server with other data. So only a server with
	// this id is the right one.
	cluster string
}

// claimDir takes the lock of the directory, or finds the server of its owner. If the
// error is nil, it returns exactly one of claim and peer.
func claimDir(ctx context.Context, dir string) (*claim, *peer, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("devserver: data directory: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, peerPatience)
	defer cancel()
	c := &claim{lock: flock.New(filepath.Join(dir, lockName)), dir: dir}
	var silent error // why the owner could not be found
	for {
		taken, err := c.lock.TryLock()
		if err != nil {
			return nil, nil, fmt.Errorf("devserver: lock %s: %w", c.lock.Path(), err)
		}
		if taken {
			// The file is of an owner that no longer runs.
			c.withdraw()
			return c, nil, nil
		}
		found, err := findPeer(ctx, dir)
		if err == nil {
			return nil, found, nil
		}
		if silent == nil || ctx.Err() == nil {
			silent = err
		}
		select {
		case <-time.After(peerInterval):
		case <-ctx.Done():
			return nil, nil, fmt.Errorf("devserver: data directory %s belongs to another process, whose server does not answer: %w (%w)",
				dir, context.Cause(ctx), silent)
		}
	}
}

// publish writes the server's address. Because of the rename, readers see all of it or
// nothing.
func (c *claim) publish(p peer) error {
	path := filepath.Join(c.dir, addressName)
	text := p.addr + "\n" + p.cluster + "\n"
	err := os.WriteFile(path+".new", []byte(text), 0o600)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("devserver: address file: %w", err)
	}
	return nil
}

// withdraw removes the address file, so that no new process uses the server.
func (c *claim) withdraw() {
	// If it can't be removed, it names a server that does not answer. Readers have to
	// expect that anyway.
	_ = os.Remove(filepath.Join(c.dir, addressName))
}

// release unlocks the directory. The lock file stays: if it were removed, two processes
// could hold locks on two files of one name.
func (c *claim) release() {
	_ = c.lock.Close()
}

// findPeer returns the server that the address file names, if it answers.
func findPeer(ctx context.Context, dir string) (*peer, error) {
	text, err := os.ReadFile(filepath.Join(dir, addressName))
	if err != nil {
		return nil, err
	}
	addr, rest, _ := strings.Cut(string(text), "\n")
	cluster, _, _ := strings.Cut(rest, "\n")
	p := &peer{addr: addr, cluster: cluster}
	ctx, cancel := context.WithTimeout(ctx, peerAnswer)
	defer cancel()
	id, err := clusterID(ctx, p.addr)
	if err != nil {
		return nil, err
	}
	if id != p.cluster {
		return nil, fmt.Errorf("the server at %s has other data", p.addr)
	}
	return p, nil
}

// clusterID returns the id that the database of the server at addr got when it was
// created.
func clusterID(ctx context.Context, addr string) (string, error) {
	c, err := client.NewLazyClient(client.Options{HostPort: addr, Logger: silence})
	if err != nil {
		return "", err
	}
	defer c.Close()
	info, err := c.WorkflowService().GetClusterInfo(ctx, &workflowservice.GetClusterInfoRequest{})
	return info.GetClusterId(), err
}
