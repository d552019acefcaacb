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

// Claim is what a token proves: this principal may say this verb to this run, once.
// Principal, Nonce and Expires are in the token; the other fields are what it is checked
// against.
type Claim struct {
	Session string
	// Execution is the execution in the run's status. A reset of the workflow changes it.
	Execution string
	Verb      agent.Verb
	// Request is the request that a decision answers; empty for other verbs.
	Request string
	// Digest is the request's digest, for an approval. Edits is [EditsOf] the arguments
	// that replace the model's, empty for none. Always allows an approval for all calls
	// of the tool in the run, and AlwaysInSession in the session.
	Digest          string
	Edits           string
	Always          bool
	AlwaysInSession bool
	// Principal is who says it, by the name in a rule or policy.
	Principal string
	// Nonce is random. [Signer.Mint] sets it.
	Nonce string
	// Expires is when the token is no longer accepted, to the second.
	Expires time.Time
}

// MaxTokenLife is how long a token may be valid. A run refuses a token that is valid for
// longer.
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

// Mint returns a token for a claim. Call it in a program that knows who the principal is,
// and do not log the token. Errors are [agent.CodeInvalidInput]: for the zero Signer, a
// missing field, or a claim that expires more than [MaxTokenLife] from now.
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

// always returns for which calls of the tool an approval may be.
func (c Claim) always() string {
	if c.AlwaysInSession {
		return "session"
	}
	return strconv.FormatBool(c.Always)
}

// sum returns what is signed. Every field has its length before it, so two different
// claims never give the same bytes.
func (c Claim) sum(keyID string) []byte {
	hash := sha512.New()
	for _, field := range []string{
		keyID, c.Session, c.Execution, string(c.Verb), c.Request, c.Digest, c.Edits, c.always(), c.Principal, c.Nonce, c.expires(),
	} {
		hash.Write(binary.BigEndian.AppendUint32(nil, uint32(len(field))))
		hash.Write([]byte(field))
	}
	return hash.Sum(nil)
}

// ClaimFor returns what a token has to prove for a verb about a request, or about none.
// Session, Execution and the token's own fields are not set.
func ClaimFor(request string, command agent.Command) Claim {
	c := Claim{Verb: command.Verb(), Request: request}
	if o, ok := command.(agent.ApproveCommand); ok {
		c.Digest, c.Edits, c.Always, c.AlwaysInSession = o.Digest, EditsOf(o.Arguments), o.Always, o.AlwaysInSession
	}
	return c
}

// Verify checks that a token was made for a claim, and returns the claim with the token's
// Principal, Nonce and Expires. Those fields of c are ignored. Errors are
// [agent.CodeBadSignature] for any token that was not made for the claim, and
// [agent.CodeExpired] for one that has expired. They never show the token.
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
	// Only a genuine token is told that it has expired.
	if !now.Before(c.Expires) {
		return Claim{}, agent.Errorf(agent.CodeExpired, "token refused: it was good until %s; ask for a new one", c.Expires.UTC().Format(time.RFC3339)).WithPath("token")
	}
	return c, nil
}

// parse splits a token. ok reports whether it is written exactly as Mint writes it.
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
	// A second spelling of a token would pass as another token. Base64 ignores bits of
	// the last letter, and numbers leading zeros.
	same := err == nil && len(name) > 0 && c.expires() == parts[2] && encodesTo(name, parts[4]) && encodesTo(decoded(parts[3]), parts[3]) && encodesTo(decoded(parts[5]), parts[5])
	return c, parts, same
}

func decoded(text string) []byte {
	raw, _ := base64.RawURLEncoding.DecodeString(text) // what cannot be decoded is no signature
	return raw
}

func encodesTo(raw []byte, text string) bool {
	return base64.RawURLEncoding.EncodeToString(raw) == text
}

// ReadClaim returns a token's Principal, Nonce and Expires without verifying it. Use it
// for tokens that were verified before they were recorded. It returns the zero value for
// a malformed token.
func ReadClaim(token string) Claim {
	c, _, ok := parse(token)
	if !ok {
		return Claim{}
	}
	return c
}

// EditsOf identifies the arguments that replace the model's in a [Claim]: the SHA-256 of
// their JSON with sorted keys, in hex. It is empty for none.
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
