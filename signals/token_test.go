package signals

import (
	"bytes"
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
	secret = bytes.Repeat([]byte("s"), 32)
	other  = bytes.Repeat([]byte("o"), 40)
	claim  = Claim{Session: "trip-42/pay-1", Run: "01a2", Request: "q-7", Approver: "ana@acme.com", Expires: at.Add(time.Hour)}
)

// asked is what a run knows of a claim.
func asked(c Claim) Claim { c.Approver, c.Expires = "", time.Time{}; return c }

func minted(t *testing.T, k Keys, id string, c Claim) string {
	t.Helper()
	token, err := k.Mint(id, c)
	require.NoError(t, err)
	return token
}

func TestATokenIsGoodForItsRequest(t *testing.T) {
	keys := Keys{"k1": secret, "k2": other}
	for _, id := range []string{"k1", "k2"} {
		token := minted(t, keys, id, claim)
		require.Regexp(t, `^v1\.`+id+`\.1795251600\.YW5hQGFjbWUuY29t\.[A-Za-z0-9_-]{43}$`, token)
		approver, refusal := keys.Verify(token, asked(claim), at)
		require.Nil(t, refusal)
		require.Equal(t, "ana@acme.com", approver)
	}
	// An approver's name may be anything, and neither it nor the times of the
	// asker's claim are looked at.
	odd := claim
	odd.Approver = "Ana \n. Ü"
	approver, refusal := keys.Verify(minted(t, keys, "k1", odd), claim, at)
	require.Nil(t, refusal)
	require.Equal(t, odd.Approver, approver)
}

const goldenToken = "v1.k1.1795251600.YW5hQGFjbWUuY29t.TeBzRqBzGsf1M_yikxs-_014NFH3XkZrHpnOTGIRN38"

// A golden token: one that is under way when a worker is replaced stays good.
func TestTokensStayWhatTheyAre(t *testing.T) {
	require.Equal(t, goldenToken, minted(t, Keys{"k1": secret}, "k1", claim))
}

func TestEveryByteOfATokenCounts(t *testing.T) {
	keys := Keys{"k1": secret, "k2": other, "j1": secret}
	token := minted(t, keys, "k1", claim)
	refuse := func(bad string) {
		t.Helper()
		approver, refusal := keys.Verify(bad, asked(claim), at)
		require.NotNil(t, refusal, bad)
		require.Equal(t, agent.BadSignature, refusal.Code)
		require.Empty(t, approver)
		require.NotContains(t, refusal.Message, bad)
	}
	for i := range token {
		for flip := 1; flip < 256; flip++ {
			b := []byte(token)
			b[i] ^= byte(flip)
			refuse(string(b))
		}
		refuse(token[:i] + token[i+1:])
		refuse(token[:i] + "\n" + token[i:]) // which base64 would pass over
	}
	refuse(token + "=")
	refuse(token + ".x")
	refuse(strings.Replace(token, ".1795251600.", ".01795251600.", 1))
	refuse(strings.Replace(token, "v1.", "v2.", 1))
	for _, bad := range []string{"....", "v1", strings.Repeat("x", 1<<20)} {
		refuse(bad)
	}
	_, refusal := keys.Verify("", asked(claim), at)
	require.Equal(t, agent.BadSignature, refusal.Code)
}

func TestATokenIsGoodForNothingElse(t *testing.T) {
	keys := Keys{"k1": secret}
	token := minted(t, keys, "k1", claim)
	for name, change := range map[string]func(*Claim){
		"another session":       func(c *Claim) { c.Session = "trip-42/pay-2" },
		"the parent's session":  func(c *Claim) { c.Session = "trip-42" },
		"another run":           func(c *Claim) { c.Run = "01a3" },
		"another request":       func(c *Claim) { c.Request = "q-8" },
		"fields that run over":  func(c *Claim) { c.Run, c.Request = "01a2q", "-7" },
		"fields that are moved": func(c *Claim) { c.Session, c.Run = c.Run, c.Session },
		"no request":            func(c *Claim) { c.Request = "" },
	} {
		c := asked(claim)
		change(&c)
		_, refusal := keys.Verify(token, c, at)
		require.NotNil(t, refusal, name)
		require.Equal(t, agent.BadSignature, refusal.Code, name)
	}
	// Another approver's name does not fit the signature.
	parts := strings.Split(token, ".")
	parts[3] = base64.RawURLEncoding.EncodeToString([]byte("bob@acme.com"))
	_, refusal := keys.Verify(strings.Join(parts, "."), asked(claim), at)
	require.Equal(t, agent.BadSignature, refusal.Code)
	// Nor does a later end.
	parts = strings.Split(token, ".")
	parts[2] = fmt.Sprint(claim.Expires.Add(time.Hour).Unix())
	_, refusal = keys.Verify(strings.Join(parts, "."), asked(claim), at)
	require.Equal(t, agent.BadSignature, refusal.Code)
}

func TestTokensExpireToTheSecond(t *testing.T) {
	keys := Keys{"k1": secret}
	c := claim
	c.Expires = c.Expires.Add(900 * time.Millisecond) // cut off
	token := minted(t, keys, "k1", c)
	_, refusal := keys.Verify(token, asked(c), claim.Expires.Add(-1))
	require.Nil(t, refusal)
	for _, now := range []time.Time{claim.Expires, claim.Expires.Add(time.Second), claim.Expires.AddDate(9, 0, 0)} {
		approver, refusal := keys.Verify(token, asked(c), now)
		require.NotNil(t, refusal)
		require.Equal(t, agent.Expired, refusal.Code)
		require.Empty(t, approver)
		require.NotContains(t, refusal.Message, token)
		require.Contains(t, refusal.Message, "2026-11-21T09:00:00Z")
	}
	// Whether it is good is told before whether it is old.
	_, refusal = Keys{"k1": other}.Verify(token, asked(c), claim.Expires)
	require.Equal(t, agent.BadSignature, refusal.Code)
}

func TestKeysThatAreNotKnown(t *testing.T) {
	token := minted(t, Keys{"k1": secret}, "k1", claim)
	for _, keys := range []Keys{nil, {}, {"k2": secret}, {"k1": nil}, {"k1": {}}, {"k1": secret[:31]}, {"k1": other}} {
		_, refusal := keys.Verify(token, asked(claim), at)
		require.NotNil(t, refusal)
		require.Equal(t, agent.BadSignature, refusal.Code)
	}
	// A token that was made with nothing is good for nobody.
	_, refusal := Keys{"k1": {}}.Verify(mint("k1", nil, claim), asked(claim), at)
	require.Equal(t, agent.BadSignature, refusal.Code)
}

func TestMintRefuses(t *testing.T) {
	keys := Keys{"k1": secret, "empty": {}, "short": secret[:31], "No Good": secret}
	for id, c := range map[string]Claim{"k2": claim, "": claim, "empty": claim, "short": claim, "No Good": claim} {
		_, err := keys.Mint(id, c)
		require.ErrorIs(t, err, agent.InvalidInput, id)
	}
	for _, change := range []func(*Claim){
		func(c *Claim) { c.Session = "" }, func(c *Claim) { c.Run = "" }, func(c *Claim) { c.Request = "" }, func(c *Claim) { c.Approver = "" },
		func(c *Claim) { c.Expires = time.Time{} }, func(c *Claim) { c.Approver = strings.Repeat("a", maxToken) }, func(c *Claim) { c.Expires = time.Unix(1e12, 0) },
	} {
		c := claim
		change(&c)
		_, err := keys.Mint("k1", c)
		require.ErrorIs(t, err, agent.InvalidInput)
	}
}

func TestParseKeys(t *testing.T) {
	one, two := base64.StdEncoding.EncodeToString(secret), base64.StdEncoding.EncodeToString(other)
	keys, err := ParseKeys("k1:" + one + ", 2026-b:" + two + "\n")
	require.NoError(t, err)
	require.Equal(t, Keys{"k1": secret, "2026-b": other}, keys)
	keys, err = ParseKeys(" ")
	require.NoError(t, err)
	require.Empty(t, keys)
	for bad, says := range map[string]string{
		one: "key 1 has no id", one + ":k1": "key 1 has no id", "K1:" + one: "key 1 has no id", strings.Repeat("k", 33) + ":" + one: "key 1 has no id",
		"k1:" + one + ",": "key 2 has no id", "k1:" + one + ",k1:" + two: "key 2 has the id of one before it",
		"k1:" + one + "!": "key 1: what is behind", "k1:": "key 1 has 0 bytes",
		"k1:" + base64.StdEncoding.EncodeToString(secret[:31]): "key 1 has 31 bytes",
	} {
		_, err := ParseKeys(bad)
		require.ErrorIs(t, err, agent.InvalidInput, bad)
		require.Contains(t, err.Error(), says)
		require.NotContains(t, err.Error(), one[:10], "a secret is in no error")
	}
}

// Keys end up in a log sooner or later: then without the secrets.
func TestKeysAreNotPrinted(t *testing.T) {
	keys := Keys{"k2": secret, "k1": other}
	for _, form := range []string{"%v", "%+v", "%#v", "%s", "%x", "%q"} {
		require.Equal(t, "[k1 k2]", fmt.Sprintf(form, keys))
		require.Contains(t, fmt.Sprintf(form, struct{ K Keys }{keys}), "[k1 k2]")
	}
	raw, err := json.Marshal(keys)
	require.NoError(t, err)
	require.Equal(t, `"[k1 k2]"`, string(raw))
}
