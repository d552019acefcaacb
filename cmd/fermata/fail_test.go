package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/follow"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/render"
)

// alone is an environment without any configuration of Temporal and with a data
// directory of the test's own.
func alone(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("XDG_DATA_HOME", dir)
	t.Setenv("XDG_CONFIG_HOME", dir)
	t.Setenv("HOME", dir)
	for _, name := range []string{"TEMPORAL_ADDRESS", "TEMPORAL_PROFILE", "TEMPORAL_CONFIG_FILE", "TEMPORAL_NAMESPACE", "ANTHROPIC_API_KEY"} {
		t.Setenv(name, "") // which is put back after the test
		require.NoError(t, os.Unsetenv(name))
	}
	for _, p := range []env.KeyPair{env.ApprovalKeys, env.ExportKeys} {
		t.Setenv(p.Public, "")
		t.Setenv(p.Private, "")
	}
	before := connect.DefaultAddress
	connect.DefaultAddress = freeAddress(t)
	t.Cleanup(func() { connect.DefaultAddress = before })
}

func TestFailsClearly(t *testing.T) {
	tests := []struct {
		args string
		exit int
		want string
	}{
		{"rnu", 2, `[invalid_input] unknown command "rnu" for "fermata"; see fermata --help`},
		{"run", 2, "[invalid_input] fermata run needs an agent and a task in quotes, and got none; see fermata run --help"},
		{"run reviewer", 2, "[invalid_input] there is no agents file: write fermata.yaml, such as"},
		{"schedule create x", 2, "[invalid_input] fermata schedule create needs an id and a text in quotes, or an id with --topic and perhaps a payload, and got 1 argument"},
		{"schedule create x hello --every 1h --agent reviewer", 2, "[invalid_input] a schedule needs --session, and --agent"},
		{"schedule create x hello --session s --agent reviewer", 2, "[invalid_input] a schedule needs either --cron or --every"},
		{"worker --deployment shop", 2, "[invalid_input] --deployment needs --build"},
		{"store check", 5, "[not_set_up] there is no store in "},
		{"store gc", 5, "[not_set_up] there is no store in "},
		{"store check --store postgres:/ana:hunter2@host/db", 2, "[invalid_input] the store: --store or FERMATA_STORE names no store: it is a folder, postgres://USER:PASSWORD@HOST:PORT/NAME or s3://BUCKET"},
		{"store check --store mysql://ana:hunter2@host/db", 2, "[invalid_input] --store or FERMATA_STORE names no store: it is a folder, postgres://"},
		{"run reviewer x --modle y", 2, "[invalid_input] unknown flag: --modle; see fermata run --help"},
		{"run Reviewer x", 2, `[invalid_input] agent "Reviewer": use 1 to 32 lower-case letters`},
		{"run reviewer -", 2, "[invalid_input] the task is blank; say what to do"},
		{"run reviewer x --session a/b", 2, `[invalid_input] session "a/b": use 1 to 100 letters`},
		{"run reviewer x --detach --model y", 2, "[invalid_input] --model and --detach exclude each other"},
		{"run reviewer x", 2, "[invalid_input] there is no agents file: write fermata.yaml, such as"},
		{"run reviewer x --agents gone.yaml", 2, "[invalid_input] the agents file can't be read: open gone.yaml: no such file or directory"},
		{"worker", 2, "[invalid_input] there is no agents file: write fermata.yaml, such as"},
		{"ls --status busy", 2, "[invalid_input] --status must be pending, running"},
		{"ls --older soon", 2, `[invalid_input] --older can't be "soon": use a time such as 90s, 24h or 7d`},
		{"ls --profile nowhere", 2, "[invalid_input] the configuration of the Temporal client: unable to find profile nowhere in config data; profiles are in "},
		{"dev --address 127.0.0.1:1", 2, "[invalid_input] dev starts its own server"},
		{"dev --addr 192.0.2.1:7233", 2, "[invalid_input] --addr must be a loopback address with a port up to 65535, such as "},
		{"ls", 5, "[unreachable] no Temporal server is named, none runs in the data directory "},
		{"wait s --timeout -1s", 2, "[invalid_input] --timeout must be positive, not -1s: how long to wait (default no limit)"},
		{"emit paid --session=", 2, "[invalid_input] --session is blank; leave it out instead"},
		{"wait s", 5, "[unreachable] no Temporal server is named"},
		{"show s", 5, "[unreachable] no Temporal server is named"},
		{"transcript s", 5, "[unreachable] no Temporal server is named"},
		{"setup", 5, "[unreachable] no Temporal server is named"},
		{"inbox", 5, "[unreachable] no Temporal server is named"},
		{"attach s", 5, "[unreachable] no Temporal server is named"},
		{"pause", 2, "[invalid_input] fermata pause needs a session, or --query, and got none; see fermata pause --help"},
		{"emit", 2, "[invalid_input] fermata emit needs a topic, and perhaps a payload as JSON in quotes, and got none"},
		{"answer s x --request q-1 --choice 0", 2, "[invalid_input] TEXT, --choice and --result exclude each other"},
		{"export s -o new", 5, "[not_set_up] FERMATA_EXPORT_SIGNING_KEY is not set: \"export $(fermata token key k1 --exports)\" makes a pair"},
		{"import old", 5, "[not_set_up] FERMATA_EXPORT_KEYS is not set"},
		{"token --session s --request q-1 --principal ana", 5, "[not_set_up] FERMATA_APPROVAL_SIGNING_KEY is not set: \"export $(fermata token key k1)\" makes a pair; keep it from the workers"},
		{"ls --address nobody.invalid:7233", 5, "[unreachable] Temporal at nobody.invalid:7233 does not answer: the name nobody.invalid has no address; start it"},
		{"dev --addr 127.0.0.1:99999", 2, "[invalid_input] --addr must be a loopback address with a port up to 65535"},
		{"ls --address 127.0.0.1:1", 5, "[unreachable] Temporal at 127.0.0.1:1 does not answer: dial tcp 127.0.0.1:1: connect: connection refused; start it"},
		{"run reviewer x --address 127.0.0.1:1", 5, "[unreachable] Temporal at 127.0.0.1:1 does not answer: "},
		{"doctor --address 127.0.0.1:1", 5, ""},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			alone(t)
			begun := time.Now()
			r := inProcess(t, strings.Fields(tt.args)...)
			require.Equal(t, tt.exit, r.exit, r.err)
			require.Less(t, time.Since(begun), 6*time.Second)
			if tt.want != "" {
				require.Empty(t, r.out)
				require.True(t, strings.HasPrefix(r.err, "fermata: error "+tt.want), r.err)
			}
			require.NotContains(t, r.err, "Usage:")
		})
	}
}

// A namespace server that is named by the environment is the one that is spoken to.
func TestEnvironmentNamesTheServer(t *testing.T) {
	alone(t)
	t.Setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
	r := inProcess(t, "ls")
	require.Equal(t, 5, r.exit)
	require.Contains(t, r.err, "Temporal at 127.0.0.1:1 does not answer")
}

// Keys that can't be read are told before anything is done, and never shown.
func TestWrongKeys(t *testing.T) {
	alone(t)
	t.Setenv(env.ApprovalKeys.Private, "k1:c2VjcmV0")
	r := inProcess(t, "token", "--session", "s", "--request", "q-1", "--principal", "ana")
	require.Equal(t, 2, r.exit, r.err)
	require.Contains(t, r.err, "[invalid_input] FERMATA_APPROVAL_SIGNING_KEY: key 1 has 6 bytes; at least 32 are needed")
	require.NotContains(t, r.err, "c2Vj")
}

func TestErrorForPrograms(t *testing.T) {
	alone(t)
	r := inProcess(t, "show", "s", "--json", "--address", "127.0.0.1:1")
	require.Equal(t, 5, r.exit)
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	var e map[string]any
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &e))
	require.Equal(t, "error", e["type"])
	require.Equal(t, "unreachable", e["code"])
	require.Contains(t, e["message"], "127.0.0.1:1")
	require.Contains(t, r.err, "fermata: error [unreachable] ")
}

func TestFaultsOf(t *testing.T) {
	a, b := agent.Errorf(agent.CodeUnknownTool, "a"), agent.Errorf(agent.CodeUnknownModel, "b")
	list := render.Faults(fmt.Errorf("worker: %w", errors.Join(a, errors.Join(b, errors.New("c")))))
	require.Len(t, list, 3)
	require.Equal(t, []agent.Code{agent.CodeUnknownTool, agent.CodeUnknownModel, agent.CodeInternal}, []agent.Code{list[0].Code, list[1].Code, list[2].Code})
	list = render.Faults(fmt.Errorf("starting: %w", a))
	require.Equal(t, "starting: a", list[0].Message)
	list = render.Faults(agent.Errorf(agent.CodeStoreUnavailable, "reading: %w", errors.Join(errors.New("refused"), errors.New("unknown"))))
	require.Len(t, list, 1, "the parts of a library's error have no code")
	require.Equal(t, agent.CodeStoreUnavailable, list[0].Code)
	require.Equal(t, "a\nb", render.JoinFaults([]*agent.Error{a, b}).Message)
}

func TestExitOf(t *testing.T) {
	require.NoError(t, exitOf(agent.StatusCompleted))
	for status, exit := range map[agent.Status]ended{agent.StatusFailed: 1, agent.StatusSuspended: 3, agent.StatusStopped: 4, agent.StatusCancelled: 4} {
		require.Equal(t, exit, exitOf(status))
	}
}

func TestDoctorWithoutServer(t *testing.T) {
	alone(t)
	r := inProcess(t, "doctor")
	require.Zero(t, r.exit, r.out)
	require.Contains(t, r.out, "ok   server      none is named and none runs: run and dev start one")
	require.Contains(t, r.out, "ok   store")
	require.Contains(t, r.out, "-    agents")
}

// A log that is damaged is not told as a run that needs nobody.
func TestALogThatCantBeReadIsToldSo(t *testing.T) {
	require.Equal(t, "the run's log can't be read", follow.FollowError(fmt.Errorf("following: %w", agent.Errorf(agent.CodeChunkDamaged, "x"))))
	require.Contains(t, follow.FollowError(agent.Errorf(agent.CodeUnreachable, "x")), "it continues")
}
