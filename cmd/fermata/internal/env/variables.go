package env

import (
	"crypto/ed25519"
	"fmt"
	"os"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/audit"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/secret"
	"github.com/fermata-agents/fermata/keyring"
)

// The environment variables of this program.
const (
	// Store says where transcripts are, like --store. A URL with a password belongs here
	// rather than in a command line.
	Store = "FERMATA_STORE"
	// Live names the broker that carries pieces of replies from workers to watchers, and
	// holds from worker to worker: nats://HOST, or several with commas.
	Live = "FERMATA_LIVE"
	// Encryption has the keys that encrypt payloads and transcripts. The first one
	// encrypts; all decrypt.
	Encryption = "FERMATA_ENCRYPTION_KEYS"
	// Plain is the time until which plain payloads are accepted beside encrypted ones.
	Plain = "FERMATA_ENCRYPTION_PLAIN_UNTIL"
	// Codec has the token of the codec server.
	Codec = "FERMATA_CODEC_TOKEN"
	// Token has the token that proves who sends something to a run.
	Token = "FERMATA_TOKEN"
	// Audit names the audit's file.
	Audit = "FERMATA_AUDIT"
	// AuditKey has the key that signs the audit.
	AuditKey = "FERMATA_AUDIT_KEY"
	// Policy names the file that says who may send what to runs.
	Policy = "FERMATA_POLICY"
	// SuspensionTexts is true if spans may have what a suspension asks.
	SuspensionTexts = "FERMATA_TRACE_SUSPENSION_TEXTS"
)

// Always is the value of [Plain] for a time that never comes.
const Always = "always"

// PlainUntil returns until when plain payloads are accepted; zero if they are not.
func PlainUntil() (until time.Time, err error) {
	switch text := os.Getenv(Plain); text {
	case "":
	case Always:
		// A far date instead of a flag: callers compare times only.
		until = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	default:
		if until, err = time.Parse(time.RFC3339, text); err != nil {
			err = agent.Errorf(agent.CodeInvalidInput, "%s: it is a time such as 2026-12-01T08:00:00Z, or %s", Plain, Always)
		}
	}
	return until, err
}

// Keyring returns the keys of this process; nil if it has none.
func Keyring() (*keyring.Ring, error) {
	text, err := secret.Get(Encryption)
	if err != nil {
		return nil, err
	}
	ring, err := keyring.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Encryption, err)
	}
	return ring, nil
}

// AuditPlace returns the audit's file and the key that signs it; empty if none is named.
func AuditPlace() (path string, key ed25519.PrivateKey, err error) {
	path, keyed := os.Getenv(Audit), secret.IsSet(AuditKey)
	switch {
	case path == "" && !keyed:
		return "", nil, nil
	case path == "" || !keyed:
		return "", nil, agent.Errorf(agent.CodeNotSetUp, "an audit needs both: %s names its file, and %s the file of the signing key (openssl genpkey -algorithm ed25519 -out audit.key)", Audit, AuditKey+secret.FileSuffix)
	}
	text, err := secret.Get(AuditKey)
	if err != nil {
		return "", nil, agent.Errorf(agent.CodeNotSetUp, "the audit's key can't be read: %w", err)
	}
	if key, err = audit.PrivateKey([]byte(text)); err != nil {
		return "", nil, agent.Errorf(agent.CodeNotSetUp, "the audit's key: %w", err)
	}
	return path, key, nil
}
