package callback

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

var key = base64.StdEncoding.EncodeToString([]byte("thirty-two bytes of a secret key"))

// signed signs a request as Standard Webhooks do.
func signed(secret, id string, at time.Time, body string) func(*http.Request) {
	raw, err := base64.StdEncoding.DecodeString(secret)
	if err != nil {
		panic(err)
	}
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, raw)
	mac.Write([]byte(id + "." + stamp + "." + body))
	return func(r *http.Request) {
		r.Header.Del("Authorization")
		r.Header.Set("webhook-id", id)
		r.Header.Set("webhook-timestamp", stamp)
		r.Header.Set("webhook-signature", "v1a,abcd v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
}

// The example of the specification is read as it stands.
func TestTheExampleOfStandardWebhooks(t *testing.T) {
	raw, err := base64.StdEncoding.DecodeString("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	require.NoError(t, err)
	require.True(t, signatureFits("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", [][]byte{raw}, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`)))
}

// A signature is good for its body, its id and five minutes. Whoever repeats the request within that
// time, with whatever other headers, repeats the same event.
func TestSigned(t *testing.T) {
	prove, err := Signed("shop", "whsec_"+key, key)
	require.NoError(t, err)
	other := base64.StdEncoding.EncodeToString([]byte("thirty-two bytes of another one."))
	now := time.Now()
	for name, bad := range map[string]func(*http.Request){
		"another key":  signed(other, "m-1", now, "{}"),
		"another body": signed(key, "m-1", now, "[]"),
		"too old":      signed(key, "m-1", now.Add(-Tolerance-time.Second), "{}"),
		"too new":      signed(key, "m-1", now.Add(Tolerance+10*time.Second), "{}"),
		"no signature": func(r *http.Request) { signed(key, "m-1", now, "{}")(r); r.Header.Del("webhook-signature") },
		"another id":   func(r *http.Request) { signed(key, "m-1", now, "{}")(r); r.Header.Set("webhook-id", "m-2") },
		"another time": func(r *http.Request) {
			signed(key, "m-1", now, "{}")(r)
			r.Header.Set("webhook-timestamp", strconv.FormatInt(now.Unix()+1, 10))
		},
		"a time that is not": func(r *http.Request) { signed(key, "m-1", now, "{}")(r); r.Header.Set("webhook-timestamp", "now") },
		"a bearer token":     with("Authorization", "Bearer "+key),
	} {
		f := parked(agent.Conditions{Event: event("a")})
		a := opened(t, f, prove).post("/callback/trip-42", "{}", bad)
		require.Equal(t, []any{403, agent.CodeDenied}, []any{a.status, a.Code}, name)
		require.Zero(t, f.asked, name)
	}

	f := parked(agent.Conditions{Event: event("a")})
	d := opened(t, f, prove)
	good := signed(key, "m-1", now, "{}")
	first := d.post("/callback/trip-42?topic=a", "{}", good)
	require.Equal(t, http.StatusOK, first.status, first.text)
	for range 2 { // repeated while the run works, and while it waits for the same again
		again := d.post("/callback/trip-42?topic=a", "{}", good, with("Idempotency-Key", "another"))
		require.Equal(t, first.text, again.text)
		f.parks("a", time.Hour)
	}
	require.Len(t, f.verbs(), 1)
	require.Equal(t, digest("id", "callback:shop", "m-1"), f.verbs()[0].Header().ID)
}

// What could be guessed is refused before anything is served, and several secrets let one be
// replaced.
func TestSecrets(t *testing.T) {
	for _, bad := range [][]string{nil, {""}, {"short"}, {token, "short"}} {
		_, err := Bearer("shop", bad...)
		require.ErrorIs(t, err, agent.CodeInvalidInput)
		_, err = Signed("shop", bad...)
		require.ErrorIs(t, err, agent.CodeInvalidInput)
	}
	_, err := Signed("shop", base64.StdEncoding.EncodeToString(make([]byte, leastSecret-1)))
	require.ErrorContains(t, err, "24 bytes")
	prove, err := Bearer("shop", "the-old-token-of-the-shop", token)
	require.NoError(t, err)
	for _, header := range []string{"Bearer " + token, "bearer the-old-token-of-the-shop"} {
		by, err := prove(&http.Request{Header: http.Header{"Authorization": {header}}}, nil)
		require.NoError(t, err)
		require.Equal(t, "shop", by)
	}
}

// JSON would make one name, or one id, of several that are not UTF-8: the second sender's event would
// count as a repetition.
func TestNamesAndIDsAreUTF8(t *testing.T) {
	f := parked(agent.Conditions{Event: event("paid")})
	d := opened(t, f, func(r *http.Request, _ func() ([]byte, error)) (string, error) { return r.Header.Get("X-Sender"), nil })
	for code, headers := range map[agent.Code][2]string{
		agent.CodeDenied:       {"caf\xe9", "1"},
		agent.CodeInvalidInput: {"shop", "M\xfcller"},
	} {
		a := d.post("/callback/trip-42?topic=paid", `{}`, with("X-Sender", headers[0]), with("Idempotency-Key", headers[1]))
		require.Equal(t, code, a.Code, a.text)
	}
	require.Empty(t, f.verbs())
	require.Equal(t, http.StatusOK, d.post("/callback/trip-42?topic=paid", `{}`, with("X-Sender", "café"), with("Idempotency-Key", "Müller")).status)
}
