package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	broker "github.com/nats-io/nats.go"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/disk"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/secret"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/worker"
)

// checkStore checks the store. If the namespace records the store of the task queue, it
// also checks that this is the same.
func (d *examination) checkStore(ctx context.Context, recorded bool) {
	if place, err := d.StorePlace(); err == nil && !strings.Contains(place, "://") && !store.IsDir(place) {
		d.checkNoStore(ctx, place, recorded)
		return
	}
	transcripts, err := d.OpenStore(ctx)
	if err == nil {
		err = answers(ctx, transcripts.Inner())
	}
	// A folder can be read although its disk is full or read-only.
	for _, f := range connect.StoreFolders(transcripts) {
		err = errors.Join(writable(f.Path), err)
	}
	switch {
	case agent.CodeOf(err) == agent.CodeChunkDamaged: // the error says what to do
		d.failed("store", err, "")
		return
	case err != nil:
		d.failed("store", err, "make it reachable, or name another one with --store")
		return
	}
	// The record is a workflow in the namespace, so without it there is nothing to compare.
	if recorded {
		err = d.CheckStore(ctx, d.server, transcripts)
	} else if d.server != nil {
		err = store.CheckNamespace(ctx, transcripts, d.server.Namespace)
	}
	// A store of another namespace may have other keys, and that error would mislead.
	if !errors.Is(err, agent.CodeNotSetUp) {
		err = readable(ctx, transcripts)
	}
	switch {
	case errors.Is(err, agent.CodeNotSetUp):
		d.failed("store", err, "")
	case errors.Is(err, agent.CodeChunkDamaged):
		d.found("store", Warning, store.Location(transcripts)+": heads of sessions are damaged, and their runs can't continue: "+err.Error(), "fermata store check")
	default:
		d.found("store", OK, store.Location(transcripts), "")
	}
}

// readable checks whether a worker could decrypt a store, as [worker.CheckStoreKeys]
// does.
func readable(ctx context.Context, s store.Store) error {
	soon, cancel := context.WithTimeout(ctx, connect.StorePatience)
	defer cancel()
	return worker.CheckStoreKeys(soon, s)
}

// noSession is a session that does not exist; doctor asks the store for its head.
const noSession = "fermata-doctor"

// answers reads one head and the identity from a store. Opening a bucket sends nothing to
// it.
func answers(ctx context.Context, s store.Store) error {
	soon, cancel := context.WithTimeout(ctx, connect.StorePatience)
	defer cancel()
	_, err := s.Head(soon, noSession)
	// A damaged head still shows that the store answers.
	if err == nil || errors.Is(err, agent.CodeNotFound) || errors.Is(err, agent.CodeChunkDamaged) {
		_, err = store.ReadID(soon, s)
	}
	return connect.Silent(ctx, err)
}

// checkNoStore checks a folder that will become a store, and creates nothing.
func (d *examination) checkNoStore(ctx context.Context, place string, recorded bool) {
	if recorded {
		if err := d.CheckLostStore(ctx, d.server); err != nil {
			d.failed("store", err, "")
			return
		}
	}
	// The folder may not exist yet; its nearest existing parent must be writable.
	there := place
	for _, err := os.Stat(there); os.IsNotExist(err) && there != filepath.Dir(there); _, err = os.Stat(there) {
		there = filepath.Dir(there)
	}
	if err := writable(there); err != nil {
		d.failed("store", err, "make it writable, or name another one with --store")
		return
	}
	d.found("store", OK, place+", which is created at its first use", "")
}

// writable tries to write in a folder, and leaves nothing there.
func writable(dir string) error {
	const much = 64 << 10 // a full disk still accepts an empty file
	f, err := os.CreateTemp(dir, ".doctor-*")
	if err == nil {
		_, err = f.Write(make([]byte, much))
		// Joined: the file must be removed even if the write failed.
		err = errors.Join(err, f.Sync(), f.Close(), os.Remove(f.Name()))
	}
	if err != nil {
		return agent.Errorf(agent.CodeStoreUnavailable, "the store in %s can't be written: %w", dir, err)
	}
	return nil
}

// checkBroker connects to the broker that the environment names, if it names one.
func (d *examination) checkBroker() {
	place, err := secret.Get(env.Live)
	if err != nil {
		d.failed("live", err, "correct it, or unset it")
		return
	}
	if place == "" {
		return
	}
	if err := connect.CheckBrokers(place); err != nil {
		d.failed("live", err, "correct it, or unset it")
	} else if err := reachBroker(place); err != nil {
		d.found("live", Warning, err.Error(), "start the broker, or correct "+env.Live)
	} else {
		d.found("live", OK, "the broker that "+env.Live+" names answers", "")
	}
}

// reachBroker connects once. The error does not contain the address, which may have a
// password.
func reachBroker(place string) error {
	conn, err := broker.Connect(place, broker.Name("fermata-doctor"), broker.Timeout(connect.DialPatience))
	if err != nil {
		return fmt.Errorf("the broker that %s names can't be reached, so people who watch runs don't see replies while they stream: %w", env.Live, err)
	}
	defer conn.Close()
	// The connection alone does not show that the broker works; a round trip does.
	if err := conn.FlushTimeout(connect.DialPatience); err != nil {
		return fmt.Errorf("the broker that %s names does not answer: %w", env.Live, err)
	}
	return nil
}

// checkDisks checks the disks that the server and the store write to.
func (d *examination) checkDisks() {
	for _, f := range d.Folders(d.server) {
		free, err := disk.Free(f.Path)
		if err != nil {
			d.found("disk", Skipped, fmt.Sprintf("how much is free for the %s %s is not known: %v", f.What, f.Path, err), "")
			continue
		}
		if err := f.CheckSpace(); err != nil {
			d.failed("disk", err, "")
			continue
		}
		d.found("disk", OK, fmt.Sprintf("%d MiB free for the %s %s", free>>20, f.What, f.Path), "")
	}
}
