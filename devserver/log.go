package devserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/log/tag"
	"go.temporal.io/server/service/history/shard"
)

// A serverLog passes the server's own log to slog, from level warn upwards. It also keeps
// the server from exiting the process: what is fatal to the server must not end the
// program that embeds it.
type serverLog struct {
	to    *slog.Logger
	muted atomic.Bool

	mu    sync.Mutex
	fatal error // the first fatal fault
}

// noHTTP is the beginning of a warning at every start, about a port that is closed on
// purpose.
const noHTTP = "HTTP API port has not been set."

var _ log.Logger = (*serverLog)(nil)

func (*serverLog) Debug(string, ...tag.Tag) {}

func (*serverLog) Info(string, ...tag.Tag) {}

func (l *serverLog) Warn(msg string, tags ...tag.Tag) { l.write(slog.LevelWarn, msg, tags) }

func (l *serverLog) Error(msg string, tags ...tag.Tag) { l.write(slog.LevelError, msg, tags) }

// DPanic logs what is a panic in the server's own tests and an error elsewhere.
func (l *serverLog) DPanic(msg string, tags ...tag.Tag) { l.write(slog.LevelError, msg, tags) }

func (l *serverLog) Panic(msg string, tags ...tag.Tag) {
	l.write(slog.LevelError, msg, tags)
	panic(msg)
}

// Fatal keeps the fault, which Start returns, and ends the calling goroutine. The server
// expects that this call never returns, and ending the goroutine comes closest to that.
func (l *serverLog) Fatal(msg string, tags ...tag.Tag) {
	l.write(slog.LevelError, msg, tags)
	err := errors.New(msg)
	for _, t := range tags {
		if cause := errorIn(t); cause != nil {
			err = fmt.Errorf("%s: %w", msg, cause)
		}
	}
	l.mu.Lock()
	if l.fatal == nil {
		l.fatal = err
	}
	l.mu.Unlock()
	runtime.Goexit()
}

// mute ends the log before the server stops. Its parts stop one by one, and would only
// report that the others are gone.
func (l *serverLog) mute() { l.muted.Store(true) }

// fault returns the first fatal fault, or nil.
func (l *serverLog) fault() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fatal
}

// reset clears the fault, for another attempt.
func (l *serverLog) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fatal = nil
}

func (l *serverLog) write(level slog.Level, msg string, tags []tag.Tag) {
	ctx := context.Background()
	if strings.HasPrefix(msg, noHTTP) || slices.ContainsFunc(tags, isStarting) {
		return
	}
	if l.muted.Load() || !l.to.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, len(tags))
	for _, t := range tags {
		attrs = append(attrs, slog.Any(t.Key(), t.Value()))
	}
	l.to.LogAttrs(ctx, level, msg, attrs...)
}

// isStarting reports whether a tag carries the error of a shard that its process has not
// acquired yet. Readers of its queues may start earlier; they try again.
func isStarting(t tag.Tag) bool { return errors.Is(errorIn(t), shard.ErrShardStatusUnknown) }

// errorIn returns the error that a tag carries: its Value is only the error's text.
func errorIn(t tag.Tag) error {
	z, ok := t.(tag.ZapTag)
	if !ok {
		return nil
	}
	err, _ := z.Field().Interface.(error)
	return err
}

// warnings passes only warnings and errors: at lower levels the SDK reports what goes
// well.
type warnings struct{ slog.Handler }

// Enabled implements [slog.Handler].
func (w warnings) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && w.Handler.Enabled(ctx, l)
}

// WithAttrs implements [slog.Handler].
func (w warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{w.Handler.WithAttrs(attrs)}
}

// WithGroup implements [slog.Handler].
func (w warnings) WithGroup(name string) slog.Handler { return warnings{w.Handler.WithGroup(name)} }
