package worker_test

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/worker"
)

func TestFromSlog(t *testing.T) {
	var out bytes.Buffer
	noTime := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	log := worker.FromSlog(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: noTime})))
	for _, c := range []struct {
		say  func()
		want string
	}{
		{func() { log.Debug("quiet") }, ""},
		{func() { log.Info("ready", zap.String("queue", "q"), zap.Int("n", 2)) }, "level=INFO msg=ready queue=q n=2\n"},
		{func() { log.Warn("late", zap.Duration("by", time.Second)) }, "level=WARN msg=late by=1s\n"},
		{func() { log.DPanic("failed", zap.Error(errors.New("no"))) }, "level=ERROR msg=failed error=no\n"},
		{func() { log.Info("skipped", zap.Skip(), zap.Error(nil)) }, "level=INFO msg=skipped\n"},
		{func() { log.Named("worker").With(zap.String("a", "b")).Info("named") }, "level=INFO msg=named a=b logger=worker\n"},
		{func() { log.Info("grouped", zap.Namespace("run"), zap.String("id", "r")) }, "level=INFO msg=grouped run.id=r\n"},
		{func() { log.With(zap.String("a", "b"), zap.Namespace("run")).Info("with", zap.String("id", "r")) }, "level=INFO msg=with a=b run.id=r\n"},
	} {
		out.Reset()
		c.say()
		require.Equal(t, c.want, out.String())
	}
}
