package signals

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Claim is what a token says: this principal may say this verb to this run, once.
// Principal, Nonce and Expires stand in the token; the rest is what it is checked against.
type Claim struct {
	Session string
	// Execution is that of the run's status: it changes when the workflow is reset.
	Execution string
	Verb      agent.Verb
	// Request is the one that a decision is about; empty for verbs that decide none.
	Request string
	// Digest is that of the request, for an approval; Edits is [EditsOf] the arguments that
	// replace the model's, empty for none; Always lets the approval be one for all calls of
	// the tool.
	Digest string
	Edits  string
	Always bool
	// Principal is who may say it, as a rule or a policy names them.
	Principal string
	// Nonce is random. [Signer.Mint] makes it.
	Nonce string
	// Expires is when the token is no longer taken, to the second.
	Expires time.Time
}

// MaxTokenLife is how long a token may be good. A run takes none that is good for longer.
const MaxTokenLife = 30 * 24 * time.Hour

const (
	tokenVersion = "v1"
	tokenPurpose = "fermata token v1"
	maxToken     = 2048
)

// A token is v1.KEY.EXPIRES.NONCE.PRINCIPAL.SIGNATURE.
var tokenForm = regexp.MustCompile(`^v1\.([a-z0-9-]{1,32})\.([0-9]{1,12})\.([A-Za-z0-9_-]{11})\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]{86})$`)

func ph(purpose string) *ed25519.Options {
	return &ed25519.Options{Hash: crypto.SHA512, Context: purpose}
}

// Mint makes the token of a claim. It is for whoever knows who the principal is, and is
// not to be logged. Errors are [agent.CodeInvalidInput]: the zero Signer, a claim with a field
// missing, or one that expires later than [MaxTokenLife] from now.
func (s Signer) Mint(c Claim) (string, error) {
	switch {
	case c.Session == "" || c.Execution == "" || c.Verb == "" || c.Principal == "" || c.Expires.Unix() <= 0:
		return "", agent.Errorf(agent.CodeInvalidInput, "minting a token: session, execution, verb, principal and expires are wanted, all of them")
	case c.Verb == agent.VerbApprove && (c.Request == "" || c.Digest == ""):
		return "", agent.Errorf(agent.CodeInvalidInput, "minting a token: an approval needs the request and its digest")
	case time.Until(c.Expires) > MaxTokenLife:
		return "", agent.Errorf(agent.CodeInvalidInput, "minting a token: it may be good for %s at most", MaxTokenLife)
	}
	nonce := make([]byte, 8)
	rand.Read(nonce)
	base := base64.RawURLEncoding
	c.Nonce = base.EncodeToString(nonce)
	signature, err := s.Sign(tokenPurpose, c.sum(s.id))
	if err != nil {
		return "", err
	}
	token := strings.Join([]string{tokenVersion, s.id, c.expires(), c.Nonce, base.EncodeToString([]byte(c.Principal)), base.EncodeToString(signature)}, ".")
	if len(token) > maxToken || !tokenForm.MatchString(token) {
		return "", agent.Errorf(agent.CodeInvalidInput, "minting a token: the principal's name is too long")
	}
	return token, nil
}

func (c Claim) expires() string { return strconv.FormatInt(c.Expires.Unix(), 10) }

// sum is what is signed: every field behind its length, so that no two claims are the same
// bytes.
func (c Claim) sum(keyID string) []byte {
	hash := sha512.New()
	for _, field := range []string{
		keyID, c.Session, c.Execution, string(c.Verb), c.Request, c.Digest, c.Edits, strconv.FormatBool(c.Always), c.Principal, c.Nonce, c.expires(),
	} {
		hash.Write(binary.BigEndian.AppendUint32(nil, uint32(len(field))))
		hash.Write([]byte(field))
	}
	return hash.Sum(nil)
}

// ClaimFor is what a token has to say for a verb about a request, or about none; session,
// execution and what stands in the token are missing.
func ClaimFor(request string, command agent.Command) Claim {
	c := Claim{Verb: command.Verb(), Request: request}
	if o, ok := command.(agent.ApproveCommand); ok {
		c.Digest, c.Edits, c.Always = o.Digest, EditsOf(o.Arguments), o.Always
	}
	return c
}

// Verify reads a token that was minted for what the claim says, whose principal, nonce and
// expiry are not looked at, and returns the claim with the token's. Errors are
// [agent.CodeBadSignature] for every token that was not minted for it, and [agent.CodeExpired] for
// one whose time is over. They never show the token.
func (k Keys) Verify(token string, c Claim, now time.Time) (Claim, *agent.Error) {
	said, parts, ok := parse(token)
	c.Principal, c.Nonce, c.Expires = said.Principal, said.Nonce, said.Expires
	switch {
	case !ok:
		return Claim{}, agent.Errorf(agent.CodeBadSignature, "token refused: it is not what fermata token prints; copy it whole, or ask for a new one").WithPath("token")
	case k[parts[1]] == nil:
		return Claim{}, agent.Errorf(agent.CodeBadSignature, "token refused: it is of the key %s, and the worker knows %s; give the worker that public key (FERMATA_APPROVAL_KEYS), or ask for a token of one that it knows", parts[1], k.named()).WithPath("token")
	case c.Expires.Sub(now) > MaxTokenLife || !k.Verified(parts[1], tokenPurpose, c.sum(parts[1]), decoded(parts[5])):
		return Claim{}, agent.Errorf(agent.CodeBadSignature, "token refused: it was not made for this verb of this run, request and arguments, or the run was reset since, or its key is another one of the id %s; ask for a new one", parts[1]).WithPath("token")
	}
	if !now.Before(c.Expires) {
		return Claim{}, agent.Errorf(agent.CodeExpired, "token refused: it was good until %s; ask for a new one", c.Expires.UTC().Format(time.RFC3339)).WithPath("token")
	}
	return c, nil
}

// parse takes a token apart; ok only if it is written as Mint writes it.
func parse(token string) (c Claim, parts []string, ok bool) {
	if len(token) > maxToken {
		return c, nil, false
	}
	if parts = tokenForm.FindStringSubmatch(token); parts == nil {
		return c, nil, false
	}
	seconds, err := strconv.ParseInt(parts[2], 10, 64)
	name := decoded(parts[4])
	c.Principal, c.Nonce, c.Expires = string(name), parts[3], time.Unix(seconds, 0)
	// It can be written in one way only: base64 passes over bits of the last letter, and
	// numbers over zeros.
	same := err == nil && len(name) > 0 && c.expires() == parts[2] && encodesTo(name, parts[4]) && encodesTo(decoded(parts[3]), parts[3]) && encodesTo(decoded(parts[5]), parts[5])
	return c, parts, same
}

func decoded(text string) []byte {
	raw, _ := base64.RawURLEncoding.DecodeString(text) // what can't be read is no signature
	return raw
}

func encodesTo(raw []byte, text string) bool {
	return base64.RawURLEncoding.EncodeToString(raw) == text
}

// ReadClaim reads whom a token names, its nonce and when it expires, without a look at
// whether it is good: for tokens that were verified before they were recorded. It is the
// zero value where the token has another form.
func ReadClaim(token string) Claim {
	c, _, ok := parse(token)
	if !ok {
		return Claim{}
	}
	return c
}

// EditsOf names the arguments that replace the model's in a [Claim]: the SHA-256 of their
// JSON with sorted keys, in hex. It is empty for none.
func EditsOf(arguments json.RawMessage) string {
	if len(bytes.TrimSpace(arguments)) == 0 {
		return ""
	}
	d := json.NewDecoder(bytes.NewReader(arguments))
	d.UseNumber()
	var v any
	if d.Decode(&v) == nil {
		if sorted, err := json.Marshal(v); err == nil {
			arguments = sorted
		}
	}
	sum := sha256.Sum256(arguments)
	return hex.EncodeToString(sum[:])
}
