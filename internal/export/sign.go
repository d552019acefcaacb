package export

import (
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/signals"
)

// The purposes of the two signatures. Neither signature is valid for the other.
const (
	envelopePurpose = "fermata export v1, envelope"
	filePurpose     = "fermata export v1, file"
)

// begins is the beginning of every export.
const begins = `{"type":"fermata.export",`

// envelope is the first line. The signature is of the content's exact bytes.
type envelope struct {
	Type      string          `json:"type"`
	Signature string          `json:"signature"`
	Content   json.RawMessage `json:"content"`
}

// Seal signs a content and returns the envelope. c.Key must name the key. The error is
// [agent.CodeInvalidInput] for the zero Signer.
func Seal(c Content, key signals.Signer) ([]byte, error) {
	raw, err := json.Marshal(c)
	if err != nil {
		return nil, agent.Errorf(agent.CodeInternal, "encoding the export of session %s: %w", c.Session, err)
	}
	sum := sha512.Sum512(raw)
	signature, err := key.Sign(envelopePurpose, sum[:])
	if err != nil {
		return nil, err
	}
	line, err := json.Marshal(envelope{Type: "fermata.export", Signature: hex.EncodeToString(signature), Content: raw})
	if err != nil {
		return nil, agent.Errorf(agent.CodeInternal, "encoding the export of session %s: %w", c.Session, err)
	}
	return line, nil
}

// Open parses an envelope and verifies it. Errors are [agent.CodeInvalidInput] if it is
// no envelope, [agent.CodeBadSignature] if it was changed or made with an unknown key,
// and [agent.CodeIncompatible] for another version.
func Open(line []byte, keys signals.Keys) (c Content, err error) {
	if !strings.HasPrefix(string(line), begins) {
		return c, agent.Errorf(agent.CodeInvalidInput, "import refused: this is no export of fermata")
	}
	var e envelope
	var named struct {
		// Only the key's name is read before the signature is verified.
		Key string `json:"key"`
	}
	if json.Unmarshal(line, &e) != nil || json.Unmarshal(e.Content, &named) != nil {
		return c, bad()
	}
	signature, err := hex.DecodeString(e.Signature)
	sum := sha512.Sum512(e.Content)
	if err != nil || !keys.Verified(named.Key, envelopePurpose, sum[:], signature) {
		return c, bad()
	}
	return decode(e.Content)
}

// decode decodes a verified content. It checks the version first: another version may
// have other fields.
func decode(raw json.RawMessage) (c Content, err error) {
	var v struct {
		V int `json:"v"`
	}
	if err := json.Unmarshal(raw, &v); err == nil && v.V != Version {
		return c, agent.Errorf(agent.CodeIncompatible, "import refused: the export has version %d; this build reads version %d", v.V, Version)
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return c, agent.Errorf(agent.CodeIncompatible, "import refused: the export can't be read by this build: %w", err)
	}
	return c, nil
}

func bad() error {
	return agent.Errorf(agent.CodeBadSignature, "import refused: the export was changed after it was made, is not complete, or was made with a key that is not known here")
}
