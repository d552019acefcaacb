package signals

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// golden reads the payloads of testdata whose names begin with a word.
func golden(f *testing.F, word string) map[string][]byte {
	paths, err := filepath.Glob(filepath.Join("testdata", "wire", "v1", word+"*.json"))
	require.NoError(f, err)
	require.NotEmpty(f, paths)
	all := map[string][]byte{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(f, err)
		all[strings.TrimSuffix(filepath.Base(path), ".json")] = data
	}
	return all
}

// sayWhy checks a refusal, which names what was refused.
func sayWhy(t *testing.T, what string, err *agent.Error) {
	require.Contains(t, []agent.Code{agent.InvalidInput, agent.TooLarge, agent.Incompatible}, err.Code)
	require.Contains(t, err.Message, what)
	_, bad := json.Marshal(err)
	require.NoError(t, bad)
}

// again wants what was taken to be taken again as it is written, and to mean the
// same. It may be longer then: some characters are written as six.
func again[T any](t *testing.T, value T, decode func([]byte) (T, *agent.Error)) {
	raw, err := json.Marshal(value)
	require.NoError(t, err)
	back, refusal := decode(raw)
	if refusal != nil {
		require.Equal(t, agent.TooLarge, refusal.Code, "%s: %v", raw, refusal)
		return
	}
	twice, err := json.Marshal(back)
	require.NoError(t, err)
	require.Equal(t, string(raw), string(twice))
}

// Whatever is said to a run, it is refused, or means the same however often it is
// handed on.
func FuzzVerbs(f *testing.F) {
	for name, data := range golden(f, "verb-") {
		f.Add(strings.TrimPrefix(name, "verb-"), data)
	}
	for _, v := range Verbs {
		f.Add(string(v), []byte(`{"request":"q-7","text":"x","answers":[{"request":"q-7","approve":{}}]}`))
		f.Add(string(v), []byte(nil))
	}
	f.Fuzz(func(t *testing.T, verb string, data []byte) {
		command, refusal := Decode(agent.Verb(verb), data)
		if refusal != nil {
			sayWhy(t, " refused", refusal)
			return
		}
		require.LessOrEqual(t, len(data), agent.MaxPayload)
		require.Equal(t, agent.Verb(verb), command.Verb())
		require.LessOrEqual(t, len(command.Common().By), maxBy)
		again(t, command, func(raw []byte) (agent.Command, *agent.Error) { return Decode(agent.Verb(verb), raw) })
	})
}

// Whatever a run is started with, it is refused, or names an agent.
func FuzzStart(f *testing.F) {
	for _, data := range golden(f, "start") {
		f.Add(data)
	}
	f.Add([]byte(`{"agent":"a","input":{"data":{"x":[null,""]}},"limits":{"cost_usd":1e300}}`))
	f.Add([]byte(`{"agent":"a","from":{"run":"r","checkpoint":"cp-3"},"carry":"reset"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		start, refusal := DecodeStart(data)
		if refusal != nil {
			sayWhy(t, "start refused", refusal)
			return
		}
		require.Nil(t, agent.CheckName(start.Agent))
		require.NoError(t, start.Limits.Check())
		again(t, start, DecodeStart)
	})
}

// Whatever a schedule was given to say, it is refused, or says one thing to a session.
func FuzzTick(f *testing.F) {
	for _, data := range golden(f, "tick") {
		f.Add(data)
	}
	f.Add([]byte(`{"session":"s","agent":"a","text":"look"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		tick, refusal := DecodeTick(data)
		if refusal != nil {
			sayWhy(t, "tick refused", refusal)
			return
		}
		require.NoError(t, agent.CheckSession(tick.Session))
		require.NotEqual(t, tick.Text == "", tick.Topic == "")
		again(t, tick, DecodeTick)
	})
}

// Whatever a model waits for, it is refused, or can come true: every schema in it
// can be asked whether a payload fits.
func FuzzParking(f *testing.F) {
	for _, conditions := range []string{
		`{}`, `{"after":"2h"}`, `{"at":"2026-11-21T08:00:00Z","on_timeout":"resume_with_input","input":"go"}`, `{"event":{"topic":"t"},"on_timeout":"fail"}`,
		`{"any":[{"after":"1m"},{"event":{"topic":"orders.paid","match":{"type":"object","required":["order"]}}}]}`,
		`{"event":{"topic":"t","match":{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#"}}}}}`, `{"event":{"topic":"t","match":{"pattern":"(a*)*$"}}}`,
	} {
		f.Add([]byte(`{"reason":"why","conditions":`+conditions+`}`), []byte(`{"order":1}`))
	}
	f.Fuzz(func(t *testing.T, data, payload []byte) {
		reason, c, refusal := DecodeParking(data)
		if refusal != nil {
			sayWhy(t, "not parked", refusal)
			return
		}
		require.NotEmpty(t, reason)
		require.LessOrEqual(t, len(c.Any), maxConditions)
		for _, one := range c.List() {
			if one.Event == nil {
				continue
			}
			require.Nil(t, agent.CheckTopic(one.Event.Topic))
			_, err := Matches(one.Event.Match, payload)
			require.True(t, err == nil || !json.Valid(payload), "%v", err)
		}
		raw, err := json.Marshal(c)
		require.NoError(t, err)
		tidy, err := DecodeConditions(raw)
		require.NoError(t, err, "%s", raw)
		twice, err := json.Marshal(tidy)
		require.NoError(t, err)
		require.Equal(t, string(raw), string(twice))
	})
}

// No token is taken but those that were made, each for its own request and until
// its time is over.
func FuzzToken(f *testing.F) {
	keys := Keys{"k1": secret, "k2": other}
	for _, id := range []string{"k1", "k2"} {
		token, err := keys.Mint(id, claim)
		require.NoError(f, err)
		f.Add(token, claim.Session, claim.Request, int64(0))
		f.Add(token, claim.Session, "q-8", int64(0))
		f.Add(token+"=", claim.Session, claim.Request, int64(3600))
	}
	f.Add(goldenToken, "trip-42", "pay-1/q-7", int64(0))
	f.Fuzz(func(t *testing.T, token, session, request string, later int64) {
		asks := Claim{Session: session, Run: claim.Run, Request: request}
		now := at.Add(time.Duration(later%1e6) * time.Second)
		approver, refusal := keys.Verify(token, asks, now)
		if refusal != nil {
			require.Contains(t, []agent.Code{agent.BadSignature, agent.Expired}, refusal.Code)
			require.Empty(t, approver)
			require.False(t, len(token) > 8 && strings.Contains(refusal.Message, token), "the token is shown")
			return
		}
		made := false
		for _, id := range []string{"k1", "k2"} {
			one, err := keys.Mint(id, claim)
			require.NoError(t, err)
			made = made || one == token
		}
		require.True(t, made, "a token was taken that nobody made")
		require.Equal(t, []string{claim.Session, claim.Request, claim.Approver}, []string{session, request, approver})
		require.True(t, now.Before(claim.Expires))
	})
}
