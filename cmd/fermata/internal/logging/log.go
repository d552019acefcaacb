package logging

import (
	"context"
	"io"
	"log/slog"
	"slices"

	"go.temporal.io/sdk/log"
	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"
	"go.uber.org/zap/zapcore"

	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

// Log is the log of a process on standard error: warnings and errors, or everything, one
// line each.
type Log struct {
	*zap.Logger
	// SDKWarnings lets warnings of the Temporal SDK through.
	SDKWarnings bool

	verbose bool
}

// New returns a log that writes to w; verbose logs everything.
func New(w io.Writer, verbose bool) *Log {
	level := zapcore.WarnLevel
	if verbose {
		level = zapcore.DebugLevel
	}
	encoder := zap.NewProductionEncoderConfig()
	encoder.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
	encoder.EncodeLevel = zapcore.LowercaseLevelEncoder
	// Stack traces and callers help the program's authors, not its users.
	encoder.StacktraceKey, encoder.CallerKey = zapcore.OmitKey, zapcore.OmitKey
	encoder.ConsoleSeparator = " "
	core := zapcore.NewCore(zapcore.NewConsoleEncoder(encoder), zapcore.Lock(zapcore.AddSync(escapeWriter{w})), level)
	return &Log{Logger: zap.New(core), verbose: verbose}
}

// escapeWriter writes each entry on one line and escapes what could control a terminal.
// JSON escapes only a part of that, and messages are not JSON.
type escapeWriter struct{ io.Writer }

// Write writes a line.
func (s escapeWriter) Write(line []byte) (int, error) {
	if _, err := io.WriteString(s.Writer, untrusted.Fold(string(line))+"\n"); err != nil {
		return 0, err
	}
	// The length of the input, as io.Writer requires, and not of the escaped text.
	return len(line), nil
}

// Slog returns the log for users of log/slog.
func (l *Log) Slog() *slog.Logger { return slog.New(zapslog.NewHandler(l.Core())) }

// SDK returns the log of the Temporal SDK. Its warnings are for people who watch a worker. Other
// commands have better errors of their own, and show the SDK's only with --verbose.
func (l *Log) SDK() log.Logger {
	if !l.verbose && !l.SDKWarnings {
		return log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	}
	return log.NewStructuredLogger(slog.New(sessions{l.Slog().Handler()}))
}

// sessions adds the session to lines of the SDK, which logs it as the workflow id.
type sessions struct{ slog.Handler }

// sdkSession is the SDK's key for the workflow id.
const sdkSession = "WorkflowID"

// WithAttrs implements [slog.Handler].
func (h sessions) WithAttrs(attrs []slog.Attr) slog.Handler {
	return sessions{h.Handler.WithAttrs(withSession(attrs))}
}

// WithGroup implements [slog.Handler].
func (h sessions) WithGroup(name string) slog.Handler { return sessions{h.Handler.WithGroup(name)} }

// Handle implements [slog.Handler].
func (h sessions) Handle(ctx context.Context, r slog.Record) error {
	attrs := make([]slog.Attr, 0, r.NumAttrs()+1)
	// A record's attributes can't be changed, so a new one is made.
	r.Attrs(func(a slog.Attr) bool { attrs = append(attrs, a); return true })
	line := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	line.AddAttrs(withSession(attrs)...)
	return h.Handler.Handle(ctx, line)
}

func withSession(attrs []slog.Attr) []slog.Attr {
	i := slices.IndexFunc(attrs, func(a slog.Attr) bool { return a.Key == sdkSession })
	if i < 0 {
		return attrs
	}
	// Beside the workflow id, because people look for the session.
	return slices.Insert(slices.Clone(attrs), i, slog.Attr{Key: "session", Value: attrs[i].Value})
}

// Server returns the log of the embedded server, which is silent without --verbose. The
// server warns of much that is no problem, such as a client that went away, and returns
// fatal errors as errors.
func (l *Log) Server() *slog.Logger {
	if !l.verbose {
		return slog.New(slog.DiscardHandler)
	}
	return l.Slog()
}
