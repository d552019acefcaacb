package conformance

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/toolcall"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/tool"
)

// maxShown is how much of a result a model sees, in bytes.
const maxShown = 128 << 10

// do makes the first attempt at a call, and checks what has to be true of every call.
func (d toolCase) do(t testing.TB, ctx context.Context, how, arguments, key string) (text string, err error) {
	t.Helper()
	return d.attempt(t, ctx, how, arguments, key, 1)
}

// attempt is do for any attempt.
func (d toolCase) attempt(t testing.TB, ctx context.Context, how, arguments, key string, number int) (text string, err error) {
	t.Helper()
	given := json.RawMessage(arguments)
	var mu sync.Mutex // a tool may report progress from any goroutine
	var progress, files strings.Builder
	c := tool.Call{
		ID: "t1.1", Session: "session", Run: "r", Agent: "tester", Turn: 1, Tool: d.spec.Name, Key: key, Attempt: number, Arguments: given,
	}.With(&toolcall.Hooks{Progress: func(line string) {
		mu.Lock()
		defer mu.Unlock()
		progress.WriteString(line + "\n")
	}, PutFile: func(_ context.Context, name, mediaType string, data []byte) (*agent.File, error) {
		mu.Lock()
		defer mu.Unlock()
		files.WriteString(name + string(data))
		f := &agent.File{Session: "session", Digest: strings.Repeat("0", 64), Size: len(data), MediaType: mediaType, Name: name}
		return f, f.Check()
	}})
	require.NoError(t, panicked(func() { text, err = d.call(ctx, c) }), "%s: the model sees only a panic, and the tool does not clean up", how)
	require.Equal(t, arguments, string(given), "%s: the arguments were changed: they belong to the transcript", how)
	mu.Lock()
	reported, shown := progress.String(), files.String()
	mu.Unlock()
	for _, secret := range d.o.Secrets {
		require.NotContains(t, reported, secret, "%s: a secret is in the progress, which everybody who follows the run can see", how)
		require.NotContains(t, shown, secret, "%s: a secret is in a file of the result, so it goes to the provider and stays in the store", how)
		require.NotContains(t, text, secret, "%s: a secret is in the result, so it goes to the provider and stays in the transcript", how)
		if err != nil {
			// %+v as well: some errors print more with it.
			require.NotContains(t, fmt.Sprintf("%v %+v", err, err), secret, "%s: a secret is in the error, which the model reads", how)
		}
	}
	if err != nil {
		require.NotEmpty(t, strings.TrimSpace(err.Error()), "%s: the error has no text for the model", how)
		return "", err
	}
	require.True(t, utf8.ValidString(text), "%s: the result is not UTF-8: other bytes are lost", how)
	require.LessOrEqual(t, len(text), maxShown, "%s: the rest of the result is cut off before the model sees it: return less, or pages", how)
	return text, nil
}

// endsSoon checks that a cancelled call ends soon.
func endsSoon(t testing.TB, how string, do func()) {
	t.Helper()
	start := time.Now()
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = panicked(do)
	}()
	select {
	case <-done:
		require.NoError(t, err, how)
		require.Less(t, time.Since(start), promptTime, "%s: it continued, and a person who interrupts a run waits for it", how)
	// A multiple of the allowed time, so a call that is only slow gets the better message above.
	case <-time.After(2 * promptTime):
		t.Fatalf("%s: it still runs after %s", how, 2*promptTime)
	}
}

// arguments returns the arguments of a call that succeeds.
func (d toolCase) arguments() string { return cmp.Or(d.o.Arguments, "{}") }

func isUnderstandable(t testing.TB, d toolCase) {
	require.NoError(t, agent.CheckTool(d.spec.Name))
	require.NotEmpty(t, strings.TrimSpace(d.spec.Description), "%s has no description: the model needs one to use the tool", d.spec.Name)
	var schema struct {
		Type       any
		Properties map[string]json.RawMessage
	}
	require.NoError(t, json.Unmarshal(d.spec.Input, &schema), "the schema of %s", d.spec.Name)
	require.Equal(t, "object", schema.Type, "%s: models send arguments by name", d.spec.Name)
	require.NoError(t, model.CheckOutput(d.spec.Input), "the schema of %s", d.spec.Name)
	for _, name := range d.spec.Secrets {
		require.Contains(t, schema.Properties, name, "%s: a secret argument that does not exist: the intended one would be shown", d.spec.Name)
	}
	require.False(t, d.spec.Timeout < 0 || d.spec.Attempts < 0, "%s: negative bounds", d.spec.Name)
	require.False(t, d.spec.Local && !d.spec.ReadOnly, "%s is local, and not read-only", d.spec.Name)
}

func resultCanBeRead(t testing.TB, d toolCase) {
	require.Empty(t, model.Fits(d.spec.Input, json.RawMessage(d.arguments())), "the Arguments of the options do not fit the schema")
	for i := range 2 {
		_, err := d.do(t, t.Context(), "a call with the Arguments of the options", d.arguments(), fmt.Sprint("r/t1.", i+1))
		require.NoError(t, err, "a call with the Arguments of the options")
	}
}

// others returns variants of the arguments, each with one change, by a description of it.
func (d toolCase) others(t testing.TB, forms []string) map[string]string {
	t.Helper()
	var given map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(d.arguments()), &given), "the Arguments of the options")
	all := map[string]string{}
	for name := range given {
		less := maps.Clone(given)
		delete(less, name)
		all["without "+name] = asJSON(less)
		for _, form := range forms {
			other := maps.Clone(given)
			other[name] = json.RawMessage(form)
			all[fmt.Sprintf("with %s = %.40s", name, form)] = asJSON(other)
		}
	}
	more := maps.Clone(given)
	more["no_such_argument"] = json.RawMessage("1")
	all["with an argument that does not exist"] = asJSON(more)
	return all
}

func (d toolCase) effects() int {
	if d.o.Effects == nil {
		return 0
	}
	return d.o.Effects()
}

func misfitsAreRefused(t testing.TB, d toolCase) {
	// None of these is an object, whatever the schema allows.
	wrong := map[string]string{"null": "null", "a list": "[]", "a word": `"x"`, "half an object": `{"a":`, "two objects": "{}{}"}
	for how, other := range d.others(t, []string{"null", `"x"`, "1", "1.5", "true", "[]", "{}", `["x",1]`}) {
		// Only values that the schema refuses: another form may fit by chance.
		if model.Fits(d.spec.Input, json.RawMessage(other)) != "" {
			wrong[how] = other
		}
	}
	for _, how := range slices.Sorted(maps.Keys(wrong)) {
		before := d.effects()
		_, err := d.do(t, t.Context(), how, wrong[how], "r/t1.9")
		require.Error(t, err, "%s: %s was accepted, but does not fit the schema", how, wrong[how])
		if d.strict {
			require.ErrorIs(t, err, agent.CodeDenied, "%s: the model must learn that nothing was done", how)
		}
		require.Equal(t, before, d.effects(), "%s: it was refused and had an effect", how)
	}
}

// strangeIsHarmless calls the tool with what a wrong model may send. An error is a good
// answer.
func strangeIsHarmless(t testing.TB, d toolCase) {
	ctx, cancel := context.WithTimeout(t.Context(), promptTime)
	defer cancel()
	// Empty, huge and escaped texts, and numbers at the edges of float64.
	forms := []string{
		`""`, `" "`, `"\u0000"`, `"../../.."`, `"ü🌍\n"`, `"%s%d"`, `"` + strings.Repeat("x", 70_000) + `"`,
		"0", "-1", "9007199254740993", "1e300", "true", "false", "[]", "{}", "null",
	}
	for how, other := range d.others(t, forms) {
		// The schema allows it, so the tool itself must cope.
		if model.Fits(d.spec.Input, json.RawMessage(other)) == "" {
			before := d.effects()
			if _, err := d.do(t, ctx, how, other, "r/t1.8"); errors.Is(err, agent.CodeDenied) {
				require.Equal(t, before, d.effects(), "%s: it was refused (%v) but had an effect: the model believes that nothing was done", how, err)
			}
		}
	}
}

func endEndsCall(t testing.TB, d toolCase) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	before := d.effects()
	d.doSoon(t, ctx, "a call whose context has ended before", d.arguments())
	require.Equal(t, before, d.effects(), "a call whose context had ended before had an effect: the model believes that it was stopped")
	if d.o.Slow == "" {
		t.Log("whether a call ends in the middle of its work is not tested: the options have no Slow")
		return
	}
	ctx, cancel = context.WithTimeout(t.Context(), promptTime/10)
	defer cancel()
	d.doSoon(t, ctx, "a call whose context ends", d.o.Slow)
	require.Error(t, ctx.Err(), "a call with the Slow arguments of the options ended by itself")
}

// doSoon makes a call that is cancelled.
func (d toolCase) doSoon(t testing.TB, ctx context.Context, how, arguments string) {
	t.Helper()
	endsSoon(t, how, func() { _, _ = d.do(t, ctx, how, arguments, "r/t1.7") })
}

// effectIsOnce makes a call three times, as after a crash and after a failure, and then
// another one.
func effectIsOnce(t testing.TB, d toolCase) {
	before := d.effects()
	run := uuid.NewString() // the tool's backend may remember the keys of another test
	for i, c := range []struct {
		key             string
		attempt, effect int
	}{{"/t2.1", 1, 1}, {"/t2.1", 1, 1}, {"/t2.1", 2, 1}, {"/t2.2", 1, 2}} {
		_, err := d.attempt(t, t.Context(), "a call that is made again", d.arguments(), run+c.key, c.attempt)
		require.NoError(t, err, "call %d with a repeated key, in attempt %d: finding the work already done is no failure", i+1, c.attempt)
		require.Equal(t, c.effect, d.effects()-before,
			"effects of %d calls; the first three have one key: a tool with Attempts is called again if it is unknown how a call ended; pass its Key on, or check whether the work is done", i+1)
	}
}

func readingHasNoEffect(t testing.TB, d toolCase) {
	before := d.effects()
	_, err := d.do(t, t.Context(), "a call", d.arguments(), "r/t3.1")
	require.NoError(t, err)
	require.Equal(t, before, d.effects(), "the tool is marked as read-only, so it runs where nothing may be changed")
}

func manyCallsWork(t testing.TB, d toolCase) {
	const many = 8
	var wg sync.WaitGroup
	errs, run := make([]error, many), uuid.NewString()
	for i := range many {
		wg.Go(func() {
			c := &tool.Call{ID: "t4.1", Run: "r", Tool: d.spec.Name, Key: fmt.Sprintf("%s/t4.%d", run, i), Attempt: 1, Arguments: json.RawMessage(d.arguments())}
			if err := panicked(func() { _, errs[i] = d.call(t.Context(), c) }); err != nil {
				errs[i] = err
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err, "one of many calls at once")
	}
}
