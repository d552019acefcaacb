package signals

import (
	"encoding/base64"
	"encoding/json"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// golden reads the payloads of testdata whose names begin with a word, by what
// follows it, always in one order: seeds have numbers.
func golden(f *testing.F, word string) iter.Seq2[string, []byte] {
	paths, err := filepath.Glob(filepath.Join("testdata", "wire", "v1", word+"*.json"))
	require.NoError(f, err)
	require.NotEmpty(f, paths)
	return func(yield func(string, []byte) bool) {
		for _, path := range paths {
			data, err := os.ReadFile(path)
			require.NoError(f, err)
			if !yield(strings.TrimPrefix(strings.TrimSuffix(filepath.Base(path), ".json"), word), data) {
				return
			}
		}
	}
}

// sayWhy checks a refusal, which names what was refused.
func sayWhy(t *testing.T, what string, err *agent.Error) {
	require.Contains(t, []agent.Code{agent.CodeInvalidInput, agent.CodeTooLarge, agent.CodeIncompatible}, err.Code)
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
		require.Equal(t, agent.CodeTooLarge, refusal.Code, "%s: %v", raw, refusal)
		return
	}
	twice, err := json.Marshal(back)
	require.NoError(t, err)
	require.Equal(t, string(raw), string(twice))
}

// Whatever is said to a run, it is refused, or means the same however often it is
// handed on.
func FuzzVerbs(f *testing.F) {
	for verb, data := range golden(f, "verb-") {
		f.Add(verb, data)
	}
	for _, v := range Verbs {
		f.Add(string(v), []byte(`{"request":"q-7","text":"x","answers":[{"request":"q-7","approve":{}}]}`))
		f.Add(string(v), []byte(nil))
	}
	for _, said := range []string{
		`interrupt {"grace":"61s"}`, `stop {"deadline":"1s"}`, `send {"parts":[{"type":"text","text":"x"}],"mode":"queue"}`, `answer {"request":"q-7","choice":-1}`,
		`approve {"request":"q-7","arguments":[1]}`, `reject {"request":"q-7"}`, `emit {"topic":"t","payload":{"a":[null,""]}}`, `shout {}`,
		`answers {"answers":[{"request":"q-7","answer":{"choice":0}},{"request":"q-8","reject":{"reason":"no"}},{"request":"q-7","approve":{}}]}`,
	} {
		verb, data, _ := strings.Cut(said, " ")
		f.Add(verb, []byte(data))
	}
	f.Fuzz(func(t *testing.T, verb string, data []byte) {
		command, refusal := Decode(agent.Verb(verb), data)
		if refusal != nil {
			sayWhy(t, " refused", refusal)
			return
		}
		require.LessOrEqual(t, len(data), agent.MaxPayload)
		require.Equal(t, agent.Verb(verb), command.Verb())
		require.LessOrEqual(t, len(command.Header().By), maxBy)
		again(t, command, func(raw []byte) (agent.Command, *agent.Error) { return Decode(agent.Verb(verb), raw) })
	})
}

// Whatever a run is started with, it is refused, or names an agent.
func FuzzStart(f *testing.F) {
	for _, data := range golden(f, "start") {
		f.Add(data)
	}
	f.Add([]byte(`{"agent":"a","input":{"data":{"x":[null,""]}},"limits":{"cost_usd":1e300}}`))
	for _, start := range []string{
		`{"agent":"a","from":{"run":"r","checkpoint":"cp-3"},"carry":"reset"}`, `{"agent":"a","from":{"session":"s","run":"r"},"carry":"sometimes"}`, `{"v":2,"agent":"a"}`, `{"agent":"A b"}`,
		`{"agent":"a","import":"` + strings.Repeat("0f", 16) + "-" + strings.Repeat("0f", 32) + `","meta":{"x":{"y":null}}}`, `{"agent":"a","import":"x"}`, `{"agent":"a","input":{"parts":[{"type":"text","text":"x"},{"type":"call"}]}}`,
		`{"agent":"a","input":{"briefing":{"summary":"s","done":[{"what":"w"}],"children":[{"summary":"t"}]}},"labels":{"k":"` + strings.Repeat("v", 257) + `"}}`, `{"agent":"a","limits":{"turns":-1}}`,
	} {
		f.Add([]byte(start))
	}
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
	for _, tick := range []string{
		`{"session":"s","agent":"a","text":"look"}`, `{"session":"s/a-1","agent":"a","text":"look"}`, `{"session":"s","agent":"a","topic":"t","payload":[{"a":1e400}]}`, `{"session":"s","agent":"a","text":"x","payload":1}`,
		`{"v":2,"session":"s","agent":"a","topic":"a b"}`, `{"session":"s","agent":"a","text":"x","by":"` + strings.Repeat("b", 257) + `"}`,
	} {
		f.Add([]byte(tick))
	}
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
		`{"event":{"topic":"t","match":{"$Ref":"#"}}}`, `{"event":{"topic":"t","match":{"not":{"$ref":"#"},"not":{}}}}`,
		`{"event":{"topic":"t","match":{"dependencies":{"a":["b"]},"prefixItems":[{"const":null}],"contains":{"multipleOf":0.5},"if":{"not":{}},"patternProperties":{"^a":false},"unevaluatedProperties":{"enum":[1]},"format":"date"}}}`,
	} {
		f.Add([]byte(`{"reason":"why","conditions":`+conditions+`}`), []byte(`{"order":1}`))
	}
	f.Fuzz(func(t *testing.T, data, payload []byte) {
		reason, c, refusal := DecodeParkRequest(data)
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
	for _, s := range []Signer{one, other} {
		token, err := s.Mint(claim)
		require.NoError(f, err)
		f.Add(token, claim.Session, claim.Request, int64(0))
		f.Add(token, claim.Session, "q-8", int64(0))
		f.Add(token+"=", claim.Session, claim.Request, int64(3600))
	}
	f.Fuzz(func(t *testing.T, token, session, request string, later int64) {
		asks := asked(claim)
		asks.Session, asks.Request = session, request
		at := now.Add(time.Duration(later%1e6) * time.Second)
		is, refusal := both().Verify(token, asks, at)
		if refusal != nil {
			require.Contains(t, []agent.Code{agent.CodeBadSignature, agent.CodeExpired}, refusal.Code)
			require.Empty(t, is)
			require.False(t, len(token) > 8 && strings.Contains(refusal.Message, token), "the token is shown")
			return
		}
		require.Contains(t, []string{signedAnew(t, one, is), signedAnew(t, other, is)}, token, "a token was taken that nobody made")
		require.Equal(t, []string{claim.Session, claim.Request, claim.Principal}, []string{session, request, is.Principal})
		require.True(t, at.Before(is.Expires))
	})
}

// signedAnew is the one token that a signer makes of a claim with its nonce. A fuzz target's
// seeds come of another process, so that it has no list of them.
func signedAnew(t *testing.T, s Signer, is Claim) string {
	c := claim
	c.Principal, c.Nonce, c.Expires = is.Principal, is.Nonce, is.Expires
	signature, err := s.Sign(tokenPurpose, c.sum(s.id))
	require.NoError(t, err)
	base := base64.RawURLEncoding
	return strings.Join([]string{tokenVersion, s.id, c.expires(), c.Nonce, base.EncodeToString([]byte(c.Principal)), base.EncodeToString(signature)}, ".")
}
