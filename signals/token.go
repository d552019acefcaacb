package signals

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/keyring"
)

// Keys sign the tokens with which approvers prove who they are: secrets of at
// least 32 bytes by key id. Several at once let one follow another. The zero
// value mints nothing and accepts nothing.
type Keys map[string][]byte

// Format prints the keys' ids instead of the keys.
func (k Keys) Format(f fmt.State, _ rune) { fmt.Fprint(f, slices.Sorted(maps.Keys(k))) }

// MarshalText writes the keys' ids instead of the keys.
func (k Keys) MarshalText() ([]byte, error) { return []byte(fmt.Sprint(k)), nil }

// Claim is what a token says: this approver may answer this request. Approver
// and Expires are in the token; the rest is what it is checked against.
type Claim struct {
	Session  string
	Run      string
	Request  string
	Approver string
	// Expires is when it is no longer taken, to the second.
	Expires time.Time
}

const (
	tokenVersion = "v1"
	maxToken     = 2048
)

var (
	keyForm   = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)
	tokenForm = regexp.MustCompile(`^v1\.([a-z0-9-]{1,32})\.([0-9]{1,12})\.([A-Za-z0-9_-]+)\.[A-Za-z0-9_-]{43}$`)
)

// ParseKeys reads keys as an environment has them, see [keyring.Entries], whose errors
// it has. An empty text is no keys.
func ParseKeys(env string) (Keys, error) {
	list, err := keyring.Entries(env)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	keys := Keys{}
	for _, e := range list {
		keys[e.ID] = e.Secret
	}
	return keys, nil
}

// Mint makes the token of a claim with one of the keys. It is for whoever shows a
// request to an approver, and is not to be logged. Errors are
// [agent.InvalidInput]: an unknown key, one that is too short, or a claim with a
// field missing.
func (k Keys) Mint(keyID string, c Claim) (string, error) {
	secret, known := k[keyID]
	switch {
	case !known || !keyForm.MatchString(keyID):
		return "", agent.Errorf(agent.InvalidInput, "minting a token: no key of that id is known")
	case len(secret) < keyring.MinSecret:
		return "", agent.Errorf(agent.InvalidInput, "minting a token: the key has %d bytes; at least %d are wanted", len(secret), keyring.MinSecret)
	case c.Session == "" || c.Run == "" || c.Request == "" || c.Approver == "" || c.Expires.Unix() <= 0:
		return "", agent.Errorf(agent.InvalidInput, "minting a token: session, run, request, approver and expires are wanted, all of them")
	}
	token := mint(keyID, secret, c)
	if len(token) > maxToken || !tokenForm.MatchString(token) {
		return "", agent.Errorf(agent.InvalidInput, "minting a token: the approver's name is too long, or it expires too late")
	}
	return token, nil
}

func mint(keyID string, secret []byte, c Claim) string {
	expires := strconv.FormatInt(c.Expires.Unix(), 10)
	mac := hmac.New(sha256.New, secret)
	for _, field := range []string{tokenVersion, keyID, c.Session, c.Run, c.Request, c.Approver, expires} {
		// Each behind its length, so that no two claims are the same bytes.
		mac.Write(binary.BigEndian.AppendUint32(nil, uint32(len(field))))
		mac.Write([]byte(field))
	}
	base := base64.RawURLEncoding
	return strings.Join([]string{tokenVersion, keyID, expires, base.EncodeToString([]byte(c.Approver)), base.EncodeToString(mac.Sum(nil))}, ".")
}

// Verify tells which approver a token was minted for, if it is one for this
// session, run and request; the claim's other fields are not looked at. Errors
// are [agent.BadSignature] for every token that is not, and [agent.Expired] for
// one that was until its time was over. They never show the token.
func (k Keys) Verify(token string, c Claim, now time.Time) (approver string, refusal *agent.Error) {
	bad := agent.Errorf(agent.BadSignature, "token refused: it was not made for this request, or not with a key that is known here; ask for a new one").At("token")
	if len(token) > maxToken || !tokenForm.MatchString(token) {
		return "", bad
	}
	parts := tokenForm.FindStringSubmatch(token)
	secret := k[parts[1]]
	seconds, wrong := strconv.ParseInt(parts[2], 10, 64)
	name, garbled := base64.RawURLEncoding.DecodeString(parts[3])
	if len(secret) < keyring.MinSecret || wrong != nil || garbled != nil {
		return "", bad
	}
	c.Approver, c.Expires = string(name), time.Unix(seconds, 0)
	// The whole token is compared, so that it can be written in one way only.
	if !hmac.Equal([]byte(token), []byte(mint(parts[1], secret, c))) {
		return "", bad
	}
	if !now.Before(c.Expires) {
		return "", agent.Errorf(agent.Expired, "token refused: it was good until %s; ask for a new one", c.Expires.UTC().Format(time.RFC3339)).At("token")
	}
	return c.Approver, nil
}

// MAC begins the signing of something else than a token (HMAC-SHA256) with one of
// the keys. What it is signed for goes in first, so that it is good for nothing
// else. Errors are [agent.InvalidInput]: an unknown key, or one that is too short.
func (k Keys) MAC(keyID, purpose string) (hash.Hash, error) {
	switch secret, known := k[keyID]; {
	case !known || !keyForm.MatchString(keyID):
		return nil, agent.Errorf(agent.InvalidInput, "no key of that id is known")
	case len(secret) < keyring.MinSecret:
		return nil, agent.Errorf(agent.InvalidInput, "the key has %d bytes; at least %d are wanted", len(secret), keyring.MinSecret)
	default:
		mac := hmac.New(sha256.New, secret)
		mac.Write(binary.BigEndian.AppendUint32(nil, uint32(len(purpose))))
		mac.Write([]byte(purpose))
		return mac, nil
	}
}

// ApproverOf reads whom a token names, without a look at whether it is good: for
// tokens that were verified before they were recorded. It is empty where the
// token has another form.
func ApproverOf(token string) string {
	parts := tokenForm.FindStringSubmatch(token)
	if parts == nil {
		return ""
	}
	name, err := base64.RawURLEncoding.DecodeString(parts[3])
	if err != nil {
		return ""
	}
	return string(name)
}
