package mcp

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const (
	grantAssertion = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	typeAssertion  = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
)

// proofTime is how long a client's signature is valid; it is sent at once, and once.
const proofTime = 2 * time.Minute

// maxProofFile bounds a file with a key or an assertion, in bytes.
const maxProofFile = 64 << 10

// prove adds credentials to a request to a token endpoint: the assertion to exchange, and
// the client's own assertion if it has a key. The caller holds the turn.
func (l *login) prove(ctx context.Context, at terms, values url.Values) error {
	l.proofs = nil
	if l.Grant == GrantAssertion {
		raw, err := readProof(l.AssertionFile)
		if err != nil {
			return fmt.Errorf("the assertion: %w", err)
		}
		assertion := strings.TrimSpace(string(raw))
		l.proofs = append(l.proofs, assertion)
		if l.Exchange != nil {
			l.proofs = append(l.proofs, l.Exchange.Secret)
			// Before the request: the provider's error could repeat them.
			l.server.hideTokens(l)
			if assertion, err = l.exchanged(ctx, at, assertion); err != nil {
				return err
			}
			l.proofs = append(l.proofs, assertion)
		}
		values.Set("grant_type", grantAssertion)
		values.Set("assertion", assertion)
	}
	// A registered client has no key; only the configured one does.
	if l.KeyFile != "" && at.Client == l.Client {
		signed, err := l.sign(at)
		if err != nil {
			return fmt.Errorf("the client's key: %w", err)
		}
		values.Set("client_assertion_type", typeAssertion)
		values.Set("client_assertion", signed)
		l.proofs = append(l.proofs, signed)
	}
	l.server.hideTokens(l)
	return nil
}

// sign returns the client's assertion (RFC 7523, section 3) for one authorization server.
func (l *login) sign(at terms) (string, error) {
	raw, err := readProof(l.KeyFile)
	if err != nil {
		return "", err
	}
	key, method, err := keyOf(raw)
	if err != nil {
		return "", err
	}
	now := time.Now()
	return jwt.NewWithClaims(method, jwt.RegisteredClaims{
		Issuer: at.Client, Subject: at.Client, Audience: jwt.ClaimStrings{at.Issuer}, ID: rand.Text(),
		IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(proofTime)),
	}).SignedString(key)
}

// keyOf parses a private key and returns its signing method.
func keyOf(raw []byte) (crypto.PrivateKey, jwt.SigningMethod, error) {
	block, _ := pem.Decode(raw)
	if block == nil {
		return nil, nil, errors.New("the file is not PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, nil, errors.New("the file has no private key in PKCS #8")
	}
	switch k := key.(type) {
	case *rsa.PrivateKey:
		return k, jwt.SigningMethodRS256, nil
	case ed25519.PrivateKey:
		return k, jwt.SigningMethodEdDSA, nil
	case *ecdsa.PrivateKey:
		switch k.Curve.Params().BitSize {
		case 256:
			return k, jwt.SigningMethodES256, nil
		case 384:
			return k, jwt.SigningMethodES384, nil
		case 521:
			return k, jwt.SigningMethodES512, nil
		}
	}
	return nil, nil, errors.New("keys of this kind are not known; RSA, ECDSA and Ed25519 are")
}

// readProof reads a file with credentials. It refuses a pipe, which could block forever.
func readProof(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// One byte more than allowed, to notice a larger file.
	raw, err := io.ReadAll(io.LimitReader(f, maxProofFile+1))
	if err == nil && len(raw) > maxProofFile {
		err = fmt.Errorf("%s has more than %d bytes", path, maxProofFile)
	}
	if err == nil && len(raw) == 0 {
		err = fmt.Errorf("%s is empty", path)
	}
	return raw, err
}
