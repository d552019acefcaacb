package audit

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"

	"github.com/fermata-agents/fermata/agent"
)

// PrivateKey reads an Ed25519 key in PEM, as `openssl genpkey -algorithm ed25519` makes it.
// Its errors are [agent.CodeInvalidInput] and have nothing of the key.
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

// PublicKey reads the other half, as `openssl pkey -pubout` makes it.
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
