package signals

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

var (
	one   = Signer{"k1", ed25519.NewKeyFromSeed(bytes.Repeat([]byte("s"), 32))}
	other = Signer{"k2", ed25519.NewKeyFromSeed(bytes.Repeat([]byte("o"), 32))}
	now   = time.Now().Truncate(time.Second)
	claim = Claim{
		Session: "trip-42/pay-1", Execution: "01a2", Verb: agent.VerbApprove, Request: "q-7", Digest: "9f2c41aa03b1c2d4",
		Principal: "ana@acme.com", Expires: now.Add(time.Hour),
	}
)

// asked is what a run knows of a claim.
func asked(c Claim) Claim {
	c.Principal, c.Nonce, c.Expires = "", "", time.Time{}
	return c
}

// both are the public keys of two signers.
func both() Keys { return Keys{"k1": one.Keys()["k1"], "k2": other.Keys()["k2"]} }

func minted(t *testing.T, s Signer, c Claim) string {
	t.Helper()
	token, err := s.Mint(c)
	require.NoError(t, err)
	return token
}

func TestATokenIsGoodForItsVerb(t *testing.T) {
	for _, s := range []Signer{one, other} {
		token := minted(t, s, claim)
		require.Regexp(t, fmt.Sprintf(`^v1\.%s\.%d\.[A-Za-z0-9_-]{11}\.YW5hQGFjbWUuY29t\.[A-Za-z0-9_-]{86}$`, s.ID(), claim.Expires.Unix()), token)
		is, refusal := both().Verify(token, asked(claim), now)
		require.Nil(t, refusal)
		require.Equal(t, "ana@acme.com", is.Principal)
		require.Equal(t, claim.Expires, is.Expires)
		require.Equal(t, is.Nonce, ReadClaim(token).Nonce)
		require.NotEqual(t, is.Nonce, ReadClaim(minted(t, s, claim)).Nonce, "no two tokens are the same")
	}
	// A principal's name may be anything, and neither it nor the times of the asker's claim
	// are looked at.
	odd := claim
	odd.Principal = "Ana \n. Ü"
	is, refusal := both().Verify(minted(t, one, odd), claim, now)
	require.Nil(t, refusal)
	require.Equal(t, odd.Principal, is.Principal)
	for _, none := range []string{"", "v1.k1", "v1.k1.1763712000.YW5h.mac"} {
		require.Empty(t, ReadClaim(none))
	}
}

func TestEveryByteOfATokenCounts(t *testing.T) {
	keys := both()
	keys["j1"] = keys["k1"]
	token := minted(t, one, claim)
	refuse := func(bad string) {
		t.Helper()
		is, refusal := keys.Verify(bad, asked(claim), now)
		require.NotNil(t, refusal, bad)
		require.Equal(t, agent.CodeBadSignature, refusal.Code)
		require.Empty(t, is)
		require.NotContains(t, refusal.Message, bad)
	}
	for i := range token {
		for _, flip := range []byte{1, 2, 4, 8, 16, 32, 64, 128, 255} {
			b := []byte(token)
			b[i] ^= flip
			refuse(string(b))
		}
		refuse(token[:i] + token[i+1:])
		refuse(token[:i] + "\n" + token[i:]) // which base64 would pass over
	}
	refuse(token + "=")
	refuse(token + ".x")
	seconds := fmt.Sprintf(".%d.", claim.Expires.Unix())
	refuse(strings.Replace(token, seconds, ".0"+seconds[1:], 1))
	refuse(strings.Replace(token, "v1.", "v2.", 1))
	for _, bad := range []string{".....", "v1", strings.Repeat("x", 1<<20)} {
		refuse(bad)
	}
	_, refusal := keys.Verify("", asked(claim), now)
	require.Equal(t, agent.CodeBadSignature, refusal.Code)
}

// A token is good for one verb of one run, about one request with these arguments.
func TestATokenIsGoodForNothingElse(t *testing.T) {
	token := minted(t, one, claim)
	for name, change := range map[string]func(*Claim){
		"another session":       func(c *Claim) { c.Session = "trip-42/pay-2" },
		"the parent's session":  func(c *Claim) { c.Session = "trip-42" },
		"another execution":     func(c *Claim) { c.Execution = "01a3" },
		"another request":       func(c *Claim) { c.Request = "q-8" },
		"no request":            func(c *Claim) { c.Request = "" },
		"another verb":          func(c *Claim) { c.Verb = agent.VerbReject },
		"other arguments":       func(c *Claim) { c.Digest = "0000000000000000" },
		"no digest":             func(c *Claim) { c.Digest = "" },
		"edited arguments":      func(c *Claim) { c.Edits = EditsOf(json.RawMessage(`{"amount_eur":9000}`)) },
		"all further calls":     func(c *Claim) { c.Always = true },
		"the whole session":     func(c *Claim) { c.AlwaysInSession = true },
		"fields that run over":  func(c *Claim) { c.Execution, c.Request = "01a2q", "-7" },
		"fields that are moved": func(c *Claim) { c.Session, c.Execution = c.Execution, c.Session },
	} {
		c := asked(claim)
		change(&c)
		_, refusal := both().Verify(token, c, now)
		require.NotNil(t, refusal, name)
		require.Equal(t, agent.CodeBadSignature, refusal.Code, name)
	}
	// Another principal's name does not fit the signature, and neither does a later end.
	parts := strings.Split(token, ".")
	for i, forged := range map[int]string{4: base64.RawURLEncoding.EncodeToString([]byte("bob@acme.com")), 2: fmt.Sprint(claim.Expires.Add(time.Hour).Unix()), 3: "AAAAAAAAAAA"} {
		bad := strings.Split(token, ".")
		bad[i] = forged
		_, refusal := both().Verify(strings.Join(bad, "."), asked(claim), now)
		require.Equal(t, agent.CodeBadSignature, refusal.Code, "%d of %q", i, parts)
	}
}

// What an order says is what its token has to say.
func TestWhatATokenHasToSay(t *testing.T) {
	edits := json.RawMessage(`{"b":1.0,"a":"<"}`)
	require.Equal(t, Claim{Verb: agent.VerbPause}, ClaimFor("", agent.PauseCommand{Reason: "lunch"}))
	require.Equal(t, Claim{Verb: agent.VerbReject, Request: "q-7"}, ClaimFor("q-7", agent.RejectCommand{Reason: "no"}))
	require.Equal(t, Claim{Verb: agent.VerbApprove, Request: "q-7", Digest: "d", Edits: EditsOf(edits), Always: true, AlwaysInSession: true},
		ClaimFor("q-7", agent.ApproveCommand{Digest: "d", Arguments: edits, Always: true, AlwaysInSession: true}))
	require.Empty(t, EditsOf(nil))
	require.Len(t, EditsOf(edits), 64)
	require.Equal(t, EditsOf(edits), EditsOf(json.RawMessage(` { "a" : "\u003c", "b":1.0 } `)), "blanks, order and escapes make no difference")
	require.NotEqual(t, EditsOf(edits), EditsOf(json.RawMessage(`{"b":1,"a":"<"}`)), "numbers count as they are written")
}

func TestTokensExpireToTheSecond(t *testing.T) {
	c := claim
	c.Expires = c.Expires.Add(900 * time.Millisecond) // cut off
	token := minted(t, one, c)
	_, refusal := both().Verify(token, asked(c), claim.Expires.Add(-1))
	require.Nil(t, refusal)
	for _, late := range []time.Time{claim.Expires, claim.Expires.Add(time.Second), claim.Expires.AddDate(9, 0, 0)} {
		is, refusal := both().Verify(token, asked(c), late)
		require.NotNil(t, refusal)
		require.Equal(t, agent.CodeExpired, refusal.Code)
		require.Empty(t, is)
		require.NotContains(t, refusal.Message, token)
		require.Contains(t, refusal.Message, claim.Expires.UTC().Format(time.RFC3339))
	}
	// Whether it is good is told before whether it is old.
	_, refusal = Keys{"k1": other.Keys()["k2"]}.Verify(token, asked(c), claim.Expires)
	require.Equal(t, agent.CodeBadSignature, refusal.Code)
}

// Nobody takes a token that is good for years, whoever minted it.
func TestNoTokenIsGoodForLong(t *testing.T) {
	c := claim
	c.Expires = now.Add(MaxTokenLife + time.Minute)
	_, err := one.Mint(c)
	require.ErrorIs(t, err, agent.CodeInvalidInput)
	c.Expires = now.Add(MaxTokenLife - time.Minute)
	token := minted(t, one, c)
	_, refusal := both().Verify(token, asked(c), now)
	require.Nil(t, refusal)
	_, refusal = both().Verify(token, asked(c), now.Add(-time.Hour))
	require.Equal(t, agent.CodeBadSignature, refusal.Code)
}

func TestKeysThatAreNotKnown(t *testing.T) {
	token := minted(t, one, claim)
	good := one.Keys()["k1"]
	for _, keys := range []Keys{nil, {}, {"k2": good}, {"k1": nil}, {"k1": {}}, {"k1": good[:31]}, {"k1": other.Keys()["k2"]}} {
		_, refusal := keys.Verify(token, asked(claim), now)
		require.NotNil(t, refusal)
		require.Equal(t, agent.CodeBadSignature, refusal.Code)
	}
}

func TestMintRefuses(t *testing.T) {
	_, err := Signer{}.Mint(claim)
	require.ErrorIs(t, err, agent.CodeInvalidInput)
	for _, change := range []func(*Claim){
		func(c *Claim) { c.Session = "" }, func(c *Claim) { c.Execution = "" }, func(c *Claim) { c.Verb = "" }, func(c *Claim) { c.Principal = "" },
		func(c *Claim) { c.Request = "" }, func(c *Claim) { c.Digest = "" }, // of an approval
		func(c *Claim) { c.Expires = time.Time{} }, func(c *Claim) { c.Principal = strings.Repeat("a", maxToken) },
	} {
		c := claim
		change(&c)
		_, err := one.Mint(c)
		require.ErrorIs(t, err, agent.CodeInvalidInput)
	}
}

// A worker verifies and can't mint: its keys have no private half, and a private one is
// refused where it does not belong.
func TestParseKeys(t *testing.T) {
	keys, err := ParseKeys(one.Public() + ", " + other.Public() + "\n")
	require.NoError(t, err)
	require.Equal(t, both(), keys)
	keys, err = ParseKeys(" ")
	require.NoError(t, err)
	require.Empty(t, keys)
	back, err := ParseSigner(one.Private())
	require.NoError(t, err)
	require.True(t, back.key.Equal(one.key))
	none, err := ParseSigner("")
	require.NoError(t, err)
	require.Empty(t, none.ID())

	spoilt := bytes.Clone(one.key)
	spoilt[63] ^= 1
	for bad, says := range map[string]string{
		one.Private():                        "key 1 is a private key",
		one.Public() + "," + one.Private():   "key 2 has the id of one before it",
		one.Public()[3:]:                     "key 1 has no ':'",
		"k1:" + encoded(make([]byte, 40)):    "key 1 has 40 bytes",
		one.Public() + "," + other.Private(): "key 2 is a private key",
	} {
		_, err := ParseKeys(bad)
		require.ErrorIs(t, err, agent.CodeInvalidInput, says)
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), one.Private()[3:13], "a secret is in no error")
	}
	for bad, says := range map[string]string{
		one.Public():                          "as a public key has",
		one.Private() + "," + other.Private(): "there are 2 keys",
		"k1:" + encoded(make([]byte, 40)):     "it has 40 bytes",
		"k1:" + encoded(spoilt):               "do not belong together",
	} {
		_, err := ParseSigner(bad)
		require.ErrorIs(t, err, agent.CodeInvalidInput, says)
		require.ErrorContains(t, err, says)
	}
	_, err = NewSigner("K 1")
	require.ErrorIs(t, err, agent.CodeInvalidInput)
	fresh, err := NewSigner("k3")
	require.NoError(t, err)
	_, refusal := fresh.Keys().Verify(minted(t, fresh, claim), asked(claim), now)
	require.Nil(t, refusal)
}

func encoded(raw []byte) string { return base64.StdEncoding.EncodeToString(raw) }

// Keys end up in a log sooner or later: then without the secrets.
func TestKeysAreNotPrinted(t *testing.T) {
	for _, form := range []string{"%v", "%+v", "%#v", "%s", "%x", "%q"} {
		require.Equal(t, "[k1 k2]", fmt.Sprintf(form, both()))
		require.Equal(t, "[k1]", fmt.Sprintf(form, one))
		require.Contains(t, fmt.Sprintf(form, struct{ S Signer }{one}), "[k1]")
	}
	raw, err := json.Marshal([]any{both(), one})
	require.NoError(t, err)
	require.Equal(t, `["[k1 k2]","[k1]"]`, string(raw))
}

// What is signed for one purpose is good for no other, whatever it begins with.
func TestSignaturesAreForOnePurpose(t *testing.T) {
	sum := bytes.Repeat([]byte{7}, 64)
	signature, err := one.Sign("a", sum)
	require.NoError(t, err)
	require.True(t, both().Verified("k1", "a", sum, signature))
	require.False(t, both().Verified("k1", "ab", sum, signature))
	require.False(t, both().Verified("k2", "a", sum, signature))
	require.False(t, both().Verified("k1", "a", sum[:63], signature))
	require.False(t, both().Verified("k1", "a", sum, nil))
	require.False(t, both().Verified("", "a", sum, signature))
	_, err = Signer{}.Sign("a", sum)
	require.ErrorIs(t, err, agent.CodeInvalidInput)
}

// A token of a key that the worker lacks is told from one that was made for something else.
func TestAnUnknownKeyIsNamed(t *testing.T) {
	one, err := NewSigner("k1")
	require.NoError(t, err)
	two, err := NewSigner("k2")
	require.NoError(t, err)
	claim := Claim{Session: "trip-42", Execution: "e-1", Verb: agent.VerbStop, Principal: "ana", Expires: time.Now().Add(time.Hour)}
	token, err := one.Mint(claim)
	require.NoError(t, err)
	for says, keys := range map[string]Keys{"it is of the key k1, and the worker knows k2;": two.Keys(), "it is of the key k1, and the worker knows no keys;": nil} {
		_, refusal := keys.Verify(token, claim, time.Now())
		require.ErrorIs(t, refusal, agent.CodeBadSignature)
		require.ErrorContains(t, refusal, says)
	}
	_, refusal := two.Keys().Verify("sesame", claim, time.Now())
	require.ErrorContains(t, refusal, "it is not what fermata token prints")
	require.NotContains(t, refusal.Error(), "sesame")
}
