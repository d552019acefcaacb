package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Daemon makes an agent one that idles where another would end: its run is
// suspended until something comes, deals with that, and idles again. Limits hold
// for each wake and not for the run's life. The zero Daemon hears every topic and
// wakes for nothing else but messages. An agent that another gives work to ends
// all the same.
type Daemon struct {
	// Every wakes the run by itself when nothing else has for so long; zero means
	// never, and 2s is the least.
	Every Duration `json:"every,omitempty"`
	// Topics are the topics of events that the run hears, 8 at most; empty means all.
	Topics []string `json:"topics,omitempty"`
	// Queue is how many events wait at most while the run is at another, up to 1000;
	// zero means 256. Past it an event is refused with [CodeQueueFull].
	Queue int `json:"queue,omitempty"`
	// Compact has the model sum up what was said before the run idles, and go on from
	// that: a model call more.
	Compact bool `json:"compact,omitempty"`
	// Watchdog is after how many wakes in a row by Every, in which the model called no
	// tool but finish, the run is completed with [ReasonWatchdog]; zero means never.
	Watchdog int `json:"watchdog,omitempty"`
}

// EveryTopic stands for all topics in the conditions of an idle daemon that hears
// all, and WaitsForEveryTopic for its topics where listings show them. No event has it.
const (
	EveryTopic         = "*"
	WaitsForEveryTopic = "every_topic"
)

// Bounds of a daemon.
const (
	defaultQueue = 256
	maxQueue     = 1000 // as many ids are remembered
	maxTopics    = 8    // listings find the run by all of them
	minEvery     = Duration(2 * time.Second)
)

// WithDefaults returns d with every default filled in; nil stays nil.
func (d *Daemon) WithDefaults() *Daemon {
	if d == nil {
		return nil
	}
	filled := *d
	filled.Queue = or(d.Queue, defaultQueue)
	return &filled
}

// Check refuses invalid values, with [CodeInvalidInput] and the field's path; nil
// is an agent that ends.
func (d *Daemon) Check() error {
	switch {
	case d == nil:
		return nil
	case d.Every != 0 && d.Every < minEvery:
		return Errorf(CodeInvalidInput, "daemon.every is %s; at least %s is taken, and 0 for never", d.Every, minEvery).WithPath("daemon.every")
	case d.Queue < 0 || d.Queue > maxQueue:
		return Errorf(CodeInvalidInput, "daemon.queue is %d; it may be 1 to %d", d.Queue, maxQueue).WithPath("daemon.queue")
	case d.Watchdog < 0:
		return Errorf(CodeInvalidInput, "daemon.watchdog: %d is not a positive number", d.Watchdog).WithPath("daemon.watchdog")
	case d.Watchdog > 0 && d.Every == 0:
		return Errorf(CodeInvalidInput, "daemon.watchdog counts wakes by daemon.every, which is missing").WithPath("daemon.watchdog")
	case len(d.Topics) > maxTopics:
		return Errorf(CodeInvalidInput, "daemon.topics has %d entries; at most %d are taken, and none means every topic", len(d.Topics), maxTopics).WithPath("daemon.topics")
	}
	for i, topic := range d.Topics {
		path := fmt.Sprintf("daemon.topics[%d]", i)
		if err := CheckTopic(topic); err != nil {
			return Errorf(CodeInvalidInput, "%s: %s", path, err.Message).WithPath(path)
		}
		if slices.Contains(d.Topics[:i], topic) {
			return Errorf(CodeInvalidInput, "%s: %s is there twice", path, topic).WithPath(path)
		}
	}
	return nil
}

// Backlog is what a session has taken and not dealt with when its run has ended: the
// next run of a daemon takes it over. Its zero value is an empty one.
type Backlog struct {
	// Unfinished means that the run ended in the middle of something. Its message stands in
	// the log, and the next run goes on from there.
	Unfinished bool `json:"unfinished,omitempty"`
	// Events wait, in the order in which they came.
	Events []EmitCommand `json:"events,omitempty"`
}

// BacklogBlob are events of an inbox that a store keeps: a blob, and which of its events, in
// their order.
type BacklogBlob struct {
	Blob string   `json:"blob"`
	Keys []string `json:"keys"` // as [EmitCommand.EventKey] has them
}

// EventKey names an event by its content: the first 16 digits of the SHA-256 of its JSON.
func (o EmitCommand) EventKey() string {
	raw, _ := json.Marshal(o) // strings, and a payload that was JSON when it came
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}
