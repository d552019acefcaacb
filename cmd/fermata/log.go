package main

import (
	"io"
	"log/slog"

	"go.temporal.io/sdk/log"
	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"
	"go.uber.org/zap/zapcore"
)

// newLogger returns the one logger of the process: warnings and worse, or all
// that there is, one line each on standard error.
func newLogger(w io.Writer, verbose bool) *zap.Logger {
	level := zapcore.WarnLevel
	if verbose {
		level = zapcore.DebugLevel
	}
	encoder := zap.NewProductionEncoderConfig()
	encoder.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
	encoder.EncodeLevel = zapcore.LowercaseLevelEncoder
	encoder.StacktraceKey, encoder.CallerKey = zapcore.OmitKey, zapcore.OmitKey
	encoder.ConsoleSeparator = " "
	return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(encoder), zapcore.Lock(zapcore.AddSync(w)), level))
}

// slogger is the logger for those who speak slog.
func (c *cli) slogger() *slog.Logger { return slog.New(zapslog.NewHandler(c.log.Core())) }

// sdkLogger is the logger of the Temporal SDK. Its warnings are for who watches a
// worker; elsewhere the command's own errors say better what is wrong, and it is
// heard with --verbose only.
func (c *cli) sdkLogger() log.Logger {
	if !c.verbose && !c.loud {
		return log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	}
	return log.NewStructuredLogger(c.slogger())
}

// serverLogger is the logger of the embedded server. It warns of much that is no
// fault, such as a client that went away, and what is fatal it returns as an error.
func (c *cli) serverLogger() *slog.Logger {
	if !c.verbose {
		return slog.New(slog.DiscardHandler)
	}
	return c.slogger()
}
