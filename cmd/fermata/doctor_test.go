package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/keyring"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/tool/workspace"
)

// Doctor finds what would fail a run that has not started yet.
func TestDoctorLooksAtProgramsAndWorkers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.write("fermata.yaml", "as_root: true\nagents:\n  a: {model: \"script:s.yaml\", tools: [\"mcp:gone\", \"mcp:here\", \"mcp:may\"]}\nmcp:\n  gone: {command: [no-such-program-at-all]}\n"+
		"  here: {command: [\"true\"]}\n  may: {command: [no-such-program-either], optional: true}\n  spare: {command: [sh]}\n  lost: {command: [none-such]}\n")
	b.write("s.yaml", "replies: [{text: Hello.}]\n")
	r := b.run("doctor")
	require.NotZero(t, r.exit)
	require.Contains(t, r.out, "FAIL mcp         the MCP server gone can't be started (no-such-program-at-all): ")
	require.Contains(t, r.out, "warn mcp         the MCP server may can't be started (no-such-program-either): ")
	require.Contains(t, r.out, "-    mcp         spare: sh is there, and no agent uses it")
	require.Contains(t, r.out, "warn mcp         lost: the command none-such can't be started, and no agent uses it")
	for _, name := range []string{"gone", "here", "may", "spare", "lost"} {
		require.Len(t, regexp.MustCompile(`(?m)^\S+ +mcp .*\b`+name+`\b`).FindAllString(r.out, -1), 1, "one verdict for %s:\n%s", name, r.out)
	}
	require.Regexp(t, `(?m)^FAIL mcp .*\bhere\b`, r.out)

	b.write("fermata.yaml", "agents:\n  a: {model: \"script:s.yaml\"}\n")
	d := b.start("dev", "--agents", b.dir+"/none.yaml", "--addr", b.addr)
	require.NotZero(t, d.wait().exit)
	dev := b.elsewhere().start("dev", "--addr", b.addr)
	dev.until("ready")
	r = b.run("doctor")
	require.Contains(t, r.out, "warn worker      none at task queue fermata: runs wait until one polls")
}

// A model's server that does not answer is no ok.
func TestDoctorAsksServersOfModels(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.write("fermata.yaml", "agents:\n  a: {model: gone}\nmodels:\n  gone: {provider: openai, model: m, base_url: \"http://127.0.0.1:1/v1\"}\n")
	r := b.run("doctor")
	require.NotZero(t, r.exit)
	require.Contains(t, r.out, "FAIL model       gone: nothing answers at http://127.0.0.1:1/v1: dial tcp 127.0.0.1:1: connect: connection refused\n")
	require.Contains(t, r.out, "-> start the server, or correct base_url of models.gone")
}

// Doctor finds what a daemon may not watch: its worker would refuse the agent.
func TestDoctorLooksAtWatchedFiles(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.write("fermata.yaml", "agents:\n  a:\n    model: \"script:s.yaml\"\n    daemon: {watch: [inbox, .env]}\n")
	b.write("s.yaml", "replies: [{text: Hello.}]\n")
	r := b.run("doctor")
	require.NotZero(t, r.exit)
	require.Contains(t, r.out, "FAIL watch       agent a: daemon.watch[1]: ")
	require.Contains(t, r.out, "-> watch paths of the workspace that the file tools may read")
}

// A fault of a check says of which agent it is, and on which line, also in doctor.
func TestDoctorNamesTheAgentOfAWrongCheck(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.write("s.yaml", "replies: [{text: Hello.}]\n")
	b.write("fermata.yaml", "agents:\n  a: {model: \"script:s.yaml\", verify: {checks: [{name: x, judge: {}}]}}\n  b:\n    model: \"script:s.yaml\"\n    hooks: {before_calls: {checks: [{name: x, judge: {}, skip: {last_turns: -1}}]}}\n"+
		"    verify:\n      checks: [{name: x, judge: {}, cadence: {every: 2000}}]\n")
	r := b.run("doctor")
	require.NotZero(t, r.exit, r.out)
	require.Regexp(t, `(?m)^FAIL agents      \S*fermata.yaml:7: agent b: verify.checks\[0\].cadence.every: must be a number up to 1000, or left out, not 2000$`, r.out)
	require.Regexp(t, `(?m)^FAIL agents      \S*fermata.yaml:5: agent b: hooks.before_calls.checks\[0\].skip.last_turns: must be`, r.out)
}

// A guard whose model has no key would refuse every run. Doctor finds it, and so do run and dev.
func TestDoctorLooksAtJudges(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.env = append(b.env, "OPENAI_API_KEY=", "OPENAI_BASE_URL=")
	b.write("s.yaml", "replies: [{text: Hello.}]\n")
	b.write("fermata.yaml", "agents:\n  a: {model: \"script:s.yaml\", hooks: {before_run: {checks: [{name: guard, judge: {model: openai/none, instructions: x}}]}}}\n")
	r := b.run("doctor")
	require.NotZero(t, r.exit, r.out)
	require.Contains(t, r.out, "FAIL key         OPENAI_API_KEY is not set: runs of a fail")
	require.Contains(t, r.out, "warn agent       a calls openai/none, too, whose price is not known: its costs are shown as zero")
	const lacks = "agent a: its model openai/none needs a key: set OPENAI_API_KEY"
	r = b.run("run", "a", "Hi", "--dry-run")
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.err, "the run would fail: ")
	require.Contains(t, r.err, lacks)
	r = b.run("run", "a", "Hi")
	require.NotZero(t, r.exit)
	require.Contains(t, r.err, "["+string(agent.CodeProviderAuth)+"]")
	require.Contains(t, r.err, lacks)
	dev := b.start("dev", "--addr", b.addr)
	dev.until("ready")
	require.Contains(t, dev.end(syscall.SIGTERM).err, "OPENAI_API_KEY is not set: runs of a will fail")
}

// Keys that can't be read are named, and nothing else is blamed for them.
func TestDoctorReadsKeys(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.write("fermata.yaml", "agents:\n  a: {model: \"script:s.yaml\", tools: [fs_write], rules: [{tools: [fs_write], do: ask, approvers: [ana]}]}\n")
	b.write("s.yaml", "replies: [{text: Hello.}]\n")
	before := b.env
	for _, variable := range []string{env.Encryption, env.ApprovalKeys.Public, env.ExportKeys.Public} {
		b.env = append(before[:len(before):len(before)], variable+"=k1:topsecret!")
		r := b.run("doctor")
		require.Equal(t, 2, r.exit, r.out)
		require.Contains(t, r.out, "FAIL keys        "+variable+": key 1: the text after the ':' is not base64")
		require.Contains(t, r.out, map[bool]string{true: "-> set it as in " + variable + "=$(fermata codec key k1)", false: "-> make a pair with "}[variable == env.Encryption])
		require.Equal(t, variable != env.Encryption, strings.Contains(r.out, "ok   store"), r.out)
		require.NotContains(t, r.out+r.err, "topsecret")
		require.NotContains(t, r.out, "make it reachable")
	}
	b.env = before
	r := b.run("doctor")
	require.Zero(t, r.exit, r.out)
	require.Contains(t, r.out, "warn keys        rules of a name approvers, and FERMATA_APPROVAL_KEYS is not set")
	b.env = append(before[:len(before):len(before)], env.ApprovalKeys.Public+"="+os.Getenv(env.ApprovalKeys.Public))
	r = b.run("doctor")
	require.NotContains(t, r.out, "warn keys")
	require.Contains(t, r.out, "warn approval    anyone who may write to the namespace can bypass approvers")
	key, err := keyring.New("k1")
	require.NoError(t, err)
	b.env = append(b.env, env.Encryption+"="+key, env.Plain+"="+env.Always)
	r = b.run("doctor")
	require.NotContains(t, r.out, "warn approval")
	require.Contains(t, r.out, "warn keys        "+env.Plain+" is always: until then anyone who may write")
}

// What may be approved by anybody may be approved by a model's own commands.
func TestApprovalsThatAModelCouldGive(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.write("s.yaml", "replies: [{text: Hello.}]\n")
	require.NoError(t, os.Mkdir(filepath.Join(b.dir, "project"), 0o755))
	agents := func(tools, rule string) string {
		return fmt.Sprintf("agents:\n  a: {model: \"script:s.yaml\", tools: [%s], rules: [{tools: [fs_write], do: ask%s}]}\nshell: {network: true}\nworkspace: project\nas_root: true\n", tools, rule)
	}
	const says = "commands of shell_run may approve what a asks for, if they reach Temporal: its rules name no approvers"
	for file, warns := range map[string]bool{
		agents("fs_write, shell_run", ""): true, agents("fs_write", ""): false,
		strings.Replace(agents("fs_write, shell_run", ""), "network: true", "network: false", 1): !workspace.HoldsNetwork(),
		agents("fs_write, shell_run", ", approvers: [ana]"):                                      false,
	} {
		b.write("fermata.yaml", file)
		require.Equal(t, warns, strings.Contains(b.run("doctor").out, "warn approval    "+says), file)
	}
	b.write("fermata.yaml", agents("fs_write, shell_run", ""))
	require.Contains(t, b.run("run", "a", "go").err, says)
}

// A store whose identity is damaged is refused by every worker.
func TestDoctorReadsTheIdentityOfTheStore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	place := filepath.Join(t.TempDir(), "store")
	require.NotContains(t, b.run("doctor", "--store", place).out, "FAIL")
	require.NoDirExists(t, place, "doctor makes none")
	require.NoError(t, os.Mkdir(place, 0o700))
	for _, id := range []string{"", "rubbish"} {
		writeFile(t, filepath.Join(place, "id"), id)
		r := b.run("doctor", "--store", place)
		require.NotZero(t, r.exit)
		require.Regexp(t, "FAIL store       the (identity of the )?store in "+place+" is damaged: ", r.out)
		require.NotContains(t, r.out, "make it reachable")
	}
}

// A setting that the model would refuse is not sent, and that is said.
func TestDoctorTellsOfTemperatures(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.write("fermata.yaml", "agents:\n  warm: {model: named, temperature: 0.5}\n  cool: {model: anthropic/claude-haiku-4-5, temperature: 0.5}\n  plain: {model: anthropic/claude-opus-5}\nmodels:\n  named: {provider: anthropic, model: claude-opus-5}\n")
	r := b.run("doctor")
	require.Equal(t, 1, strings.Count(r.out, "temperature"+" of "), r.out)
	require.Contains(t, r.out, "warn agent       the temperature of warm is not sent to named: ")
}

// A broker that is away stops no run, and is told; what it is reached with is not.
func TestDoctorAsksTheBroker(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.env = append(b.env, env.Live+"=nats://me:topsecret@127.0.0.1:1")
	r := b.run("doctor")
	require.Zero(t, r.exit, r.out)
	require.Contains(t, r.out, "warn live        the broker that FERMATA_LIVE names can't be reached")
	require.NotContains(t, r.out+r.err, "topsecret")
	b.env = append(b.env, env.Live+"=http://here")
	r = b.run("doctor")
	require.Equal(t, 2, r.exit, r.out)
	require.Contains(t, r.out, "FAIL live        FERMATA_LIVE can't be read: ")
}

// What a worker refuses to start with fails in doctor, in the same words.
func TestDoctorFindsWhyNoWorkerStarts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.write("fermata.yaml", "agents:\n  a: {model: \"script:s.yaml\"}\n")
	b.write("s.yaml", "replies: [{text: Hello.}]\n")
	refuses := func(vars []string, what, says string, args ...string) {
		t.Helper()
		other := *b
		other.env = append(slices.Clone(b.env), vars...)
		r := other.run(append([]string{"doctor"}, args...)...)
		require.NotZero(t, r.exit, r.out)
		require.Contains(t, r.out, fmt.Sprintf("FAIL %-12s%s", what, says))
		dev := other.run(append([]string{"dev", "--addr", b.addr}, args...)...)
		require.NotZero(t, dev.exit)
		require.Contains(t, dev.err, says)
	}
	plain, _ := transcripts(t)
	s, err := store.OpenDir(plain, nil)
	require.NoError(t, err)
	_, err = store.ID(t.Context(), s)
	require.NoError(t, err)
	require.NotContains(t, b.run("doctor", "--store", plain).out, "FAIL")
	key, err := keyring.New("k1")
	require.NoError(t, err)
	file := filepath.Join(b.tmp, "keys")
	writeFile(t, file, key)
	refuses([]string{env.Encryption + "_FILE=" + file}, "store", "this process can read nothing in the store: give it the keys", "--store", plain)

	record, _ := audited(b)
	r := b.run("doctor")
	require.Zero(t, r.exit, r.out)
	require.Contains(t, r.out, "ok   audit       "+record+"\n")
	require.NoDirExists(t, filepath.Dir(record), "doctor makes none")
	none := filepath.Join(b.tmp, "none")
	refuses([]string{env.AuditKey + "_FILE=" + none}, "audit", "the audit's key can't be read: FERMATA_AUDIT_KEY_FILE: stat "+none+": no such file or directory")
	refuses([]string{env.AuditKey + "_FILE="}, "audit", "an audit needs both: ")
	refuses([]string{env.Audit + "=" + b.dir}, "audit", "the audit in "+b.dir+" can't be written: open "+b.dir+": is a directory")
	refuses([]string{env.Audit + "=" + b.dir + "/s.yaml"}, "audit", "the audit in "+b.dir+"/s.yaml ends with a line that another key signed: keep that file, and use another one: ")
}

// Doctor names what of docs/security.md is not set up; that is no fault.
func TestDoctorNamesWhatIsNotSetUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.write("fermata.yaml", "agents:\n  a: {model: \"script:s.yaml\"}\n")
	b.write("s.yaml", "replies: [{text: Hello.}]\n")
	const all = "not set up here: encryption keys (FERMATA_ENCRYPTION_KEYS), approval keys (FERMATA_APPROVAL_KEYS), a policy (FERMATA_POLICY), an audit (FERMATA_AUDIT), a daily limit (daily in fermata.yaml)"
	r := b.run("doctor")
	require.Zero(t, r.exit, r.out)
	require.Contains(t, r.out, "-    security    "+all+"\n                 -> ")
	r = b.run("doctor", "--json")
	require.Zero(t, r.exit, r.out)
	require.Contains(t, r.out, `{"v":1,"check":"security","verdict":"skipped","text":"`+all+`","todo":"`)

	key, err := keyring.New("k1")
	require.NoError(t, err)
	audited(b)
	b.write("policy.yaml", "policy: []\n")
	b.write("fermata.yaml", "agents:\n  a: {model: \"script:s.yaml\"}\ndaily: {tokens: 1000}\n")
	b.env = append(b.env, env.Policy+"=policy.yaml", env.Encryption+"="+key)
	r = b.run("doctor")
	require.Zero(t, r.exit, r.out)
	require.Contains(t, r.out, "ok   security    encryption keys, approval keys, a policy, an audit and a daily limit are set up\n")
}

// A variable that is misspelt, or that belongs to somebody else, is told by doctor and by who
// starts a worker.
func TestVariablesThatAWorkerDoesNotTake(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.write("fermata.yaml", "agents:\n  a: {model: \"script:s.yaml\"}\n")
	b.write("s.yaml", "replies: [{text: Hello.}]\n")
	r := b.run("doctor")
	require.NotContains(t, r.out, "variables")
	// The last are those that Kubernetes makes of a service, and they are nobody's error.
	b.env = append(b.env, "FERMATA_APPROVAL_KEY=t0psecret", "FERMATA_ENCRYPTION_KEY_FILE=/t0psecret", "FERMATA_NONSENSE=1", env.Store+"_FILE=", env.ApprovalKeys.Private+"_FILE=/keys/t0psecret",
		"FERMATA_SERVICE_HOST=10.0.0.1", "FERMATA_DB_PORT_5432_TCP_ADDR=10.0.0.2", "FERMATA_PORT=tcp://10.0.0.1:80")
	says := []string{
		"FERMATA_APPROVAL_KEY is no variable of fermata, and nothing reads it; did you mean FERMATA_APPROVAL_KEYS?",
		"FERMATA_ENCRYPTION_KEY_FILE is no variable of fermata, and nothing reads it; did you mean FERMATA_ENCRYPTION_KEYS_FILE?",
		"FERMATA_NONSENSE is no variable of fermata, and nothing reads it",
		"FERMATA_APPROVAL_SIGNING_KEY_FILE is set: anyone who reads it can act as any approver. A worker verifies with FERMATA_APPROVAL_KEYS alone",
	}
	r = b.run("doctor")
	require.Zero(t, r.exit, r.out)
	ran := b.run("run", "a", "Hello")
	require.Zero(t, ran.exit, ran.err)
	for _, one := range says {
		require.Regexp(t, `(?m)^warn (variables|keys)  +`+regexp.QuoteMeta(one)+"$", r.out)
		require.Equal(t, 1, strings.Count(ran.err, one), "%s in:\n%s", one, ran.err)
	}
	for _, text := range []string{r.out, ran.err} {
		require.NotContains(t, text, "t0psecret")
		require.NotContains(t, text, "_PORT")
		require.NotContains(t, text, "FERMATA_SERVICE_HOST")
	}
}
