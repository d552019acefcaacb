package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/disk"
	"github.com/fermata-agents/fermata/store"
)

// diskEvery is how often a process with a worker looks.
const diskEvery = 10 * time.Second

// dataFolder is what the data directory of the embedded server is called.
const dataFolder = "data directory"

// folders are those of a command and its server; s is nil where none answers.
func (c *cli) folders(s *server) (list []disk.Folder) {
	dir, err := c.dataDir()
	if err == nil && (s == nil && hasServer(dir) || s != nil && s.embedded != nil) {
		list = append(list, disk.Folder{dataFolder, dir})
	}
	return append(list, storeFolder(c.openedStore.Encrypted)...)
}

// storeFolder is the folder of a store that has one.
func storeFolder(s *store.Encrypted) []disk.Folder {
	if s == nil {
		return nil
	}
	if d, ok := s.Inner().(*store.Dir); ok {
		return []disk.Folder{{"store", d.Root()}}
	}
	return nil
}

// warnFull warns of disks that are full: what a command meets then is a deadline.
func (c *cli) warnFull(all ...disk.Folder) {
	for _, f := range all {
		if err := f.CheckSpace(); err != nil {
			c.Note("fermata: warning: %v", err)
		}
	}
}

// watchDisks logs, until the context ends, when a disk becomes full and when it has room
// again, and measures them.
func (c *cli) watchDisks(ctx context.Context, s *server) error {
	all := c.folders(s)
	if err := c.measureDisks(all); err != nil {
		return err
	}
	full := map[string]bool{}
	c.logDisks(all, full)
	go func() {
		look := time.NewTicker(diskEvery)
		defer look.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
				c.logDisks(all, full)
			}
		}
	}()
	return nil
}

// logDisks logs what has changed since the last look.
func (c *cli) logDisks(all []disk.Folder, full map[string]bool) {
	for _, f := range all {
		err := f.CheckSpace()
		switch {
		case err != nil && !full[f.Path]:
			c.log.Error("disk full", zap.String("of", f.What), zap.String("path", f.Path), zap.Error(err))
		case err == nil && full[f.Path]:
			c.log.Warn("disk has room again", zap.String("of", f.What), zap.String("path", f.Path))
		}
		full[f.Path] = err != nil
	}
}

// measureDisks exports how much is free, where metrics go anywhere.
func (c *cli) measureDisks(all []disk.Folder) error {
	if c.exports.meters == nil {
		return nil
	}
	_, err := c.exports.meters.Meter("github.com/fermata-agents/fermata/cmd/fermata").Int64ObservableGauge("fermata.disk.free", metric.WithUnit("By"),
		metric.WithDescription("What may still be written where the store and the embedded server keep their data."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			for _, f := range all {
				if free, err := disk.Free(f.Path); err == nil {
					o.Observe(free, metric.WithAttributes(attribute.String("fermata.disk.of", f.What), attribute.String("fermata.disk.path", f.Path)))
				}
			}
			return nil
		}))
	if err != nil {
		return fmt.Errorf("measuring disks: %w", err)
	}
	return nil
}

// checkDisks looks at the disks that the server and the store write to.
func (d *doctor) checkDisks() {
	for _, f := range d.folders(d.server) {
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
