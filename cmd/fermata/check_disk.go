package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/disk"
)

// checkDisks looks at the disks that the server and the store write to.
func (d *doctor) checkDisks() {
	for _, f := range d.Folders(d.server) {
		free, err := disk.Free(f.Path)
		if err != nil {
			d.found("disk", verdictSkipped, fmt.Sprintf("how much is free for the %s %s is not known: %v", f.What, f.Path, err), "")
			continue
		}
		if err := f.CheckSpace(); err != nil {
			d.failed("disk", err, "")
			continue
		}
		d.found("disk", verdictOK, fmt.Sprintf("%d MiB free for the %s %s", free>>20, f.What, f.Path), "")
	}
}

// writable tries to write in a folder, and leaves nothing there.
func writable(dir string) error {
	const much = 64 << 10 // a full disk takes an empty file
	f, err := os.CreateTemp(dir, ".doctor-*")
	if err == nil {
		_, err = f.Write(make([]byte, much))
		err = errors.Join(err, f.Sync(), f.Close(), os.Remove(f.Name()))
	}
	if err != nil {
		return agent.Errorf(agent.CodeStoreUnavailable, "the store in %s can't be written: %w", dir, err)
	}
	return nil
}
