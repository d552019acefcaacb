package main

import (
	"strings"
	"sync"

	"go.temporal.io/server/common/metrics"
)

// meter counts, from the server's metrics, its billable actions by type, and workers'
// reports to it.
type meter struct {
	metrics.Handler // takes metrics that are not counted
	tags            []metrics.Tag
	counts          *counts
}

type counts struct {
	mu      sync.Mutex
	actions map[string]int64 // by type
	reports int64            // RPCs with which workers report what they did
}

func newMeter() *meter {
	return &meter{Handler: metrics.NoopMetricsHandler, counts: &counts{actions: map[string]int64{}}}
}

// WithTags implements [metrics.Handler].
func (m *meter) WithTags(tags ...metrics.Tag) metrics.Handler {
	return &meter{m.Handler, append(m.tags[:len(m.tags):len(m.tags)], tags...), m.counts}
}

// Counter implements [metrics.Handler].
func (m *meter) Counter(name string) metrics.CounterIface {
	if name != metrics.ActionCounter.Name() && name != metrics.ServiceRequests.Name() {
		return m.Handler.Counter(name)
	}
	return metrics.CounterFunc(func(n int64, tags ...metrics.Tag) {
		m.count(name, n, append(m.tags[:len(m.tags):len(m.tags)], tags...))
	})
}

func (m *meter) count(name string, n int64, tags []metrics.Tag) {
	value := func(key string) (v string) {
		for _, t := range tags {
			if t.Key == key {
				v = t.Value
			}
		}
		return v
	}
	m.counts.mu.Lock()
	defer m.counts.mu.Unlock()
	if name == metrics.ActionCounter.Name() {
		m.counts.actions[value("action_type")] += n
		return
	}
	operation := value(metrics.OperationTagName)
	if value("service_name") == "frontend" && (strings.HasPrefix(operation, "Respond") || strings.HasPrefix(operation, "Record")) {
		m.counts.reports += n
	}
}

// heartbeats returns how many activity heartbeats were counted since [meter.take].
func (m *meter) heartbeats() int64 {
	m.counts.mu.Lock()
	defer m.counts.mu.Unlock()
	return m.counts.actions["grpc_RecordActivityTaskHeartbeat"]
}

// take returns the counts since the last call, and starts again at zero.
func (m *meter) take() (actions, reports int64) {
	m.counts.mu.Lock()
	defer m.counts.mu.Unlock()
	for _, n := range m.counts.actions {
		actions += n
	}
	reports = m.counts.reports
	clear(m.counts.actions)
	m.counts.reports = 0
	return actions, reports
}
