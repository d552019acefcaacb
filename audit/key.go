package audit

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"

	"github.com/fermata-agents/fermata/agent"
)

// PrivateKey parses an Ed25519 private key in PEM, as `openssl genpkey -algorithm
// ed25519` prints it. Its errors are [agent.CodeInvalidInput] and show nothing of the
// key.
func PrivateKey(text []byte) (ed25519.PrivateKey, error) {
	if block, _ := pem.Decode(text); block != nil {
		if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
			if key, ok := key.(ed25519.PrivateKey); ok {
				return key, nil
			}
		}
	}
	return nil, agent.Errorf(agent.CodeInvalidInput, "it is no private Ed25519 key in PEM; make one with openssl genpkey -algorithm ed25519 -out audit.key")
}

// PublicKey parses an Ed25519 public key in PEM, as `openssl pkey -pubout` prints it. Its
// errors are [agent.CodeInvalidInput].
func PublicKey(text []byte) (ed25519.PublicKey, error) {
	if block, _ := pem.Decode(text); block != nil {
		if key, err := x509.ParsePKIXPublicKey(block.Bytes); err == nil {
			if key, ok := key.(ed25519.PublicKey); ok {
				return key, nil
			}
		}
	}
	return nil, agent.Errorf(agent.CodeInvalidInput, "it is no public Ed25519 key in PEM; make it with openssl pkey -in audit.key -pubout -out audit.pub")
}
