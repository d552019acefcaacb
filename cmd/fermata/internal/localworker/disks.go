package localworker

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/disk"
)

// diskEvery is how often a process with a worker checks its disks.
const diskEvery = 10 * time.Second

// watchDisks logs, until the context ends, when a disk becomes full and when it has space
// again. It also measures free space.
func (h *Host) watchDisks(ctx context.Context, s *connect.Server) error {
	all := h.Folders(s)
	if err := h.measureDisks(all); err != nil {
		return err
	}
	full := map[string]bool{}
	// Once before the goroutine: a full disk is logged at the start.
	h.logDisks(all, full)
	go func() {
		look := time.NewTicker(diskEvery)
		defer look.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
				h.logDisks(all, full)
			}
		}
	}()
	return nil
}

// logDisks logs what changed since the last check.
func (h *Host) logDisks(all []disk.Folder, full map[string]bool) {
	for _, f := range all {
		err := f.CheckSpace()
		switch {
		case err != nil && !full[f.Path]:
			h.Log.Error("disk full", zap.String("of", f.What), zap.String("path", f.Path), zap.Error(err))
		case err == nil && full[f.Path]:
			h.Log.Warn("disk has space again", zap.String("of", f.What), zap.String("path", f.Path))
		}
		full[f.Path] = err != nil
	}
}

// measureDisks exports how much space is free, if metrics are exported.
func (h *Host) measureDisks(all []disk.Folder) error {
	if h.Meters == nil {
		return nil
	}
	_, err := h.Meters.Meter("github.com/fermata-agents/fermata/cmd/fermata").Int64ObservableGauge("fermata.disk.free", metric.WithUnit("By"),
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
