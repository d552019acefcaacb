package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	natsd "github.com/nats-io/nats-server/v2/server"
	broker "github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/live/nats"
)

func TestAWrongBucket(t *testing.T) {
	for place, why := range map[string]string{
		"s3://acme?what=ever": "unknown query parameter",
		"gs://acme":           "postgres://",
	} {
		r := inProcess(t, "store", "check", "--store", place)
		require.Equal(t, 2, r.exit, r.err)
		require.Contains(t, r.err, "[invalid_input]")
		require.Contains(t, r.err, why)
	}
}

// Doctor reads from the store: a bucket that nobody serves can be opened all the same.
func TestDoctorReadsFromTheStore(t *testing.T) {
	alone(t)
	in(t, "AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=hunter2", "AWS_EC2_METADATA_DISABLED=true")
	r := inProcess(t, "doctor", "--store", "s3://acme?region=eu-central-1&use_path_style=true&endpoint=https://127.0.0.1:1")
	require.Equal(t, agent.CodeStoreUnavailable.ExitStatus(), r.exit, r.out)
	require.Equal(t, 1, strings.Count(r.out, "FAIL"), r.out)
	require.Regexp(t, "(?m)^FAIL store       looking for .* in the bucket s3://acme: .*connection refused$", r.out)
	require.NotContains(t, r.out+r.err, "hunter2")
}

// A worker of the command tells of holds over the broker, and hears of those of the trees
// that it works for.
func TestHoldsGoOverTheBroker(t *testing.T) {
	t.Parallel()
	at, err := natsd.NewServer(&natsd.Options{Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true})
	require.NoError(t, err)
	at.Start()
	t.Cleanup(at.Shutdown)
	require.True(t, at.ReadyForConnections(patience))
	conn, err := broker.Connect(at.ClientURL())
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	told := make(chan agent.HoldRef, 10)
	nats.NewHolds(conn, nil).Follow("s-1", func(h agent.HoldRef) { told <- h })
	require.NoError(t, conn.Flush())

	b := setup(t)
	b.env = append(b.env, env.Live+"="+at.ClientURL())
	project(b)
	b.write("slow.yaml", "replies:\n  - {text: \"At last.\", delay: 10m}\n")
	dev := b.start("dev")
	dev.until("ready")
	r := b.run("run", "slow", "Take your time", "--detach", "--session", "s-1")
	require.Zero(t, r.exit, r.err)
	followers := func() int {
		all, err := at.Subsz(&natsd.SubszOptions{Subscriptions: true, Test: "fermata.holds.s-1"})
		require.NoError(t, err)
		return all.Total
	}
	require.Eventually(t, func() bool { return followers() == 2 }, patience, 20*time.Millisecond, "this test, and the worker")
	r = b.run("interrupt", "s-1")
	require.Zero(t, r.exit, r.err)
	require.Eventually(t, func() bool { return len(told) > 0 }, patience, 20*time.Millisecond)
	require.Equal(t, agent.VerbInterrupt, (<-told).Verb)
	require.Eventually(t, func() bool { return followers() == 1 }, patience, 20*time.Millisecond, "the worker has nothing in flight")
	r = b.run("cancel", "s-1")
	require.Zero(t, r.exit, r.err)
	require.Zero(t, dev.end(syscall.SIGTERM).exit)
}
