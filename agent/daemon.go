package agent

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// Daemon makes an agent idle where others end. Its run is suspended until a message or an
// event comes, works on it, and idles again. Limits start at zero again for each wake. By
// default a daemon takes events of every topic, has no timer and watches no files. A daemon that runs as a
// sub-agent ends like any other.
type Daemon struct {
	// Every wakes the run when nothing else has woken it for so long, at least 2s; zero means
	// never.
	Every Duration `json:"every,omitempty"`
	// Topics are the topics of events that the run takes, at most 8; empty means all topics.
	Topics []string `json:"topics,omitempty"`
	// Watch are files and directories that wake the idle run when they change, at most 8; nil
	// means none. They are paths below the worker's workspace, with slashes, such as "inbox"; "." is
	// the workspace itself. A directory counts with all files below it.
	Watch []string `json:"watch,omitempty"`
	// WatchEvery is how often the idle run looks at them, at least 2s; zero means 30s. Each look is
	// an activity, and calls no model.
	WatchEvery Duration `json:"watch_every,omitempty"`
	// Queue is how many events may wait while the run works, at most 1000; zero means 256. One
	// more is refused with the code [CodeQueueFull].
	Queue int `json:"queue,omitempty"`
	// Compact has the model sum up the conversation before the run idles, which costs one more
	// model call. The run continues from the summary.
	Compact bool `json:"compact,omitempty"`
	// Watchdog is after how many wakes in a row by every, without a call of any tool but
	// finish, the run is completed with the reason [ReasonWatchdog]; zero means never.
	Watchdog int `json:"watchdog,omitempty"`
}

// Names that stand for all topics. EveryTopic is in the conditions of an idle daemon that
// takes all topics; listings show WaitsForEveryTopic instead. No event has either as its
// topic.
const (
	EveryTopic         = "*"
	WaitsForEveryTopic = "every_topic"
)

// Limits of a daemon.
const (
	defaultQueue = 256
	maxQueue     = 1000 // a session remembers as many ids of events
	maxTopics    = 8    // listings have to find the run by each of them
	minEvery     = Duration(2 * time.Second)
	maxWatch     = 8
	maxWatchPath = 256 // bytes: every look names the paths in the history
	defaultLook  = Duration(30 * time.Second)
)

// HandledEvent names an event that a daemon works on.
type HandledEvent struct {
	ID    string `json:"id,omitempty"`
	Topic string `json:"topic"`
}

// FileMark is how the files of one entry of [Daemon.Watch] looked.
type FileMark struct {
	// Digest changes if a file comes, goes, or has another size or time.
	Digest string `json:"digest"`
	// Newest is the latest time at which a file was changed, in nanoseconds since 1970; zero without
	// a file.
	Newest int64 `json:"newest,omitempty"`
}

// FilesSeen is what a look at the files of [Daemon.Watch] has seen.
type FilesSeen struct {
	// Marks has a mark for each entry of Watch, in its order.
	Marks []FileMark `json:"marks"`
	// Changed names what has changed since the last look: new files and files with a newer time, or
	// the entry itself if none of its files has one. More counts what is not named.
	Changed []string `json:"changed,omitempty"`
	More    int      `json:"more,omitempty"`
}

// WithDefaults returns d with every default filled in; nil stays nil.
func (d *Daemon) WithDefaults() *Daemon {
	if d == nil {
		return nil
	}
	filled := *d
	filled.Queue = or(d.Queue, defaultQueue)
	if len(d.Watch) > 0 {
		filled.WatchEvery = or(d.WatchEvery, defaultLook)
	}
	return &filled
}

// Check returns a [CodeInvalidInput] error that names the field if a value is invalid. A
// nil Daemon is valid: the agent ends.
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
	return d.checkWatch()
}

// checkWatch returns an error that names the field if what is watched is invalid.
func (d *Daemon) checkWatch() error {
	switch {
	case d.Watch != nil && len(d.Watch) == 0:
		return Errorf(CodeInvalidInput, "daemon.watch is empty; name what is watched, or leave it out").WithPath("daemon.watch")
	case d.WatchEvery != 0 && len(d.Watch) == 0:
		return Errorf(CodeInvalidInput, "daemon.watch_every is how often the files of daemon.watch are looked at; name some there, or leave it out").WithPath("daemon.watch_every")
	case d.WatchEvery != 0 && d.WatchEvery < minEvery:
		return Errorf(CodeInvalidInput, "daemon.watch_every is %s; at least %s is taken", d.WatchEvery, minEvery).WithPath("daemon.watch_every")
	case len(d.Watch) > maxWatch:
		return Errorf(CodeInvalidInput, "daemon.watch has %d paths; at most %d are taken: name their directory", len(d.Watch), maxWatch).WithPath("daemon.watch")
	}
	for i, file := range d.Watch {
		path := fmt.Sprintf("daemon.watch[%d]", i)
		switch {
		case !fs.ValidPath(file) || strings.ContainsFunc(file, func(r rune) bool { return r < ' ' || r == '\\' || r == 0x7f }):
			return Errorf(CodeInvalidInput, "%s: %q must be a path below the workspace, such as inbox or docs/todo.md: relative, with slashes, without \"..\", \"./\" and a slash at its end", path, file).WithPath(path)
		case strings.ContainsAny(file, "*?[{"):
			return Errorf(CodeInvalidInput, "%s: %q is a pattern, and only paths are watched: name the directory, and all files below it are", path, file).WithPath(path)
		case len(file) > maxWatchPath:
			return Errorf(CodeInvalidInput, "%s has %d bytes; at most %d are taken", path, len(file), maxWatchPath).WithPath(path)
		case slices.Contains(d.Watch[:i], file):
			return Errorf(CodeInvalidInput, "%s: %s is there twice", path, file).WithPath(path)
		}
	}
	return nil
}
