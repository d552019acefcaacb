package worker

import (
	"context"
	"log/slog"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// FromSlog returns a logger for [Options.Logger] that writes to a [slog.Logger]. Debug,
// Info, Warn and Error keep their names; zap's levels above Error become Error.
func FromSlog(l *slog.Logger) *zap.Logger { return zap.New(slogCore{l.Handler()}) }

// slogCore writes zap's entries to a slog.Handler.
type slogCore struct{ handler slog.Handler }

func (c slogCore) Enabled(l zapcore.Level) bool {
	return c.handler.Enabled(context.Background(), slogLevel(l))
}

func (c slogCore) With(fields []zapcore.Field) zapcore.Core {
	for i, f := range fields {
		if f.Type == zapcore.NamespaceType {
			c.handler = c.handler.WithAttrs(slogAttrs(fields[:i])).WithGroup(f.Key)
			return c.With(fields[i+1:])
		}
	}
	return slogCore{c.handler.WithAttrs(slogAttrs(fields))}
}

func (c slogCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return ce.AddCore(e, c)
	}
	return ce
}

func (c slogCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	record := slog.NewRecord(e.Time, slogLevel(e.Level), e.Message, e.Caller.PC)
	if e.LoggerName != "" {
		record.AddAttrs(slog.String("logger", e.LoggerName))
	}
	record.AddAttrs(slogAttrs(fields)...)
	return c.handler.Handle(context.Background(), record)
}

func (c slogCore) Sync() error { return nil }

// slogAttrs returns the fields in their order. Fields after a namespace are in its group.
func slogAttrs(fields []zapcore.Field) (attrs []slog.Attr) {
	for i, f := range fields {
		if f.Type == zapcore.NamespaceType {
			return append(attrs, slog.Attr{Key: f.Key, Value: slog.GroupValue(slogAttrs(fields[i+1:])...)})
		}
		// An encoder for each field: its map would lose the order of the fields.
		m := zapcore.NewMapObjectEncoder()
		f.AddTo(m)
		if v, ok := m.Fields[f.Key]; ok {
			attrs = append(attrs, slog.Any(f.Key, v))
		}
	}
	return attrs
}

func slogLevel(l zapcore.Level) slog.Level {
	switch {
	case l < zapcore.InfoLevel:
		return slog.LevelDebug
	case l == zapcore.InfoLevel:
		return slog.LevelInfo
	case l == zapcore.WarnLevel:
		return slog.LevelWarn
	}
	return slog.LevelError
}
