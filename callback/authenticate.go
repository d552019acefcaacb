package callback

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fermata-agents/fermata/agent"
)

// Authenticate says who sends a request. Body returns the body as it came, for signatures of it. It
// reads the body at the first call, which may take seconds and one of few slots: check first what
// needs no body, and return its error as it is. r.Body is empty, and r.TLS has the certificate of a
// client that has one. The name is recorded after [By]. Any other error refuses the request with
// [agent.CodeDenied]; the sender does not learn the reason. It must be safe for concurrent use.
type Authenticate func(r *http.Request, body func() ([]byte, error)) (by string, err error)

// Limits of secrets.
const (
	// leastToken is the minimum length of a token, in characters. Shorter ones can be guessed.
	leastToken = 20
	// leastSecret is the minimum length of a key that signs, in bytes.
	leastSecret = 24
	// Tolerance is how far the time of a signature may be from now. An older request may be one
	// that somebody repeats.
	Tolerance = 5 * time.Minute
)

// Bearer authenticates by one of several tokens in the Authorization header: "Bearer TOKEN". Several
// let a token be replaced. The tokens' digests are compared, in constant time. by names the sender, in 1
// to 200 bytes of UTF-8. The error is [agent.CodeInvalidInput] if it does not, if there is no token, or one
// has less than 20 characters.
func Bearer(by string, tokens ...string) (Authenticate, error) {
	if err := checkName(by); err != nil {
		return nil, err
	}
	if len(tokens) == 0 {
		return nil, agent.Errorf(agent.CodeInvalidInput, "there is no token")
	}
	var known [][sha256.Size]byte
	for i, t := range tokens {
		if len(t) < leastToken {
			return nil, agent.Errorf(agent.CodeInvalidInput, "token %d has %d characters and could be guessed; use at least %d, such as those of openssl rand -hex 32", i+1, len(t), leastToken)
		}
		known = append(known, sha256.Sum256([]byte(t)))
	}
	return func(r *http.Request, _ func() ([]byte, error)) (string, error) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		given, found := sha256.Sum256([]byte(token)), 0
		// All of them are compared: the time must not tell which one fits.
		for _, k := range known {
			found |= subtle.ConstantTimeCompare(k[:], given[:])
		}
		if !strings.EqualFold(scheme, "Bearer") || found != 1 {
			return "", errors.New("the bearer token is missing or wrong")
		}
		return by, nil
	}, nil
}

// Headers of a signed request (standardwebhooks.com).
const (
	headerID        = "Webhook-Id"
	headerTime      = "Webhook-Timestamp"
	headerSignature = "Webhook-Signature"
)

// Signed authenticates by a signature of the body, as Standard Webhooks define it: an HMAC-SHA256 of
// webhook-id, webhook-timestamp and the body, whose time is at most [Tolerance] from now. A secret
// is base64, with or without "whsec_" before it; several let a secret be replaced. The signature
// does not cover the URL. by names the sender, as in [Bearer]. The error is [agent.CodeInvalidInput] if it
// does not, if there is no secret, or one is not base64 of at least 24 bytes.
func Signed(by string, secrets ...string) (Authenticate, error) {
	if err := checkName(by); err != nil {
		return nil, err
	}
	if len(secrets) == 0 {
		return nil, agent.Errorf(agent.CodeInvalidInput, "there is no secret")
	}
	var keys [][]byte
	for i, s := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(s, "whsec_"))
		if err != nil || len(key) < leastSecret {
			return nil, agent.Errorf(agent.CodeInvalidInput, "secret %d is not base64 of at least %d bytes, such as openssl rand -base64 32 prints", i+1, leastSecret)
		}
		keys = append(keys, key)
	}
	return func(r *http.Request, body func() ([]byte, error)) (string, error) {
		id, at, signatures := r.Header.Get(headerID), r.Header.Get(headerTime), r.Header.Get(headerSignature)
		seconds, err := strconv.ParseInt(at, 10, 64)
		if id == "" || signatures == "" || err != nil {
			return "", errors.New("webhook-id, webhook-timestamp or webhook-signature is missing or malformed")
		}
		if away := time.Since(time.Unix(seconds, 0)).Abs(); away > Tolerance {
			return "", errors.New("the signature's time is not now")
		}
		raw, err := body()
		if err != nil {
			return "", err
		}
		if !signatureFits(signatures, keys, id, at, raw) {
			return "", errors.New("no signature in webhook-signature fits")
		}
		return by, nil
	}, nil
}

// signatureFits reports whether one of the signatures in a header was made with one of the keys.
func signatureFits(header string, keys [][]byte, id, at string, body []byte) bool {
	found := false
	for _, key := range keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + at + "."))
		mac.Write(body)
		want := mac.Sum(nil)
		for _, one := range strings.Fields(header) {
			text, ok := strings.CutPrefix(one, "v1,")
			given, err := base64.StdEncoding.DecodeString(text)
			found = found || ok && err == nil && hmac.Equal(given, want)
		}
	}
	return found
}

// checkName refuses a sender's name that can't be recorded.
func checkName(name string) error {
	switch {
	case strings.TrimSpace(name) == "" || len(name) > maxName:
		return agent.Errorf(agent.CodeInvalidInput, "the sender's name has %d bytes; it needs 1 to %d", len(name), maxName)
	case !utf8.ValidString(name): // JSON would make several such names one
		return agent.Errorf(agent.CodeInvalidInput, "the sender's name %q is not UTF-8", name)
	}
	return nil
}
