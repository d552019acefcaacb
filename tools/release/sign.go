package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

const (
	// publicKey is the tree's file with the key that verifies its releases.
	publicKey  = "docs/release.pub"
	provenance = "provenance.intoto.json"
)

// signer reads the key that signs a release. It must match the tree's public key.
// Otherwise nobody with the tree could verify the release.
func (r *release) signer() (ed25519.PrivateKey, error) {
	if r.key == "" {
		if r.quick {
			return nil, nil
		}
		return nil, errors.New("a release is signed: name the private key with -key (docs/releasing.md), or try without one with -quick")
	}
	text, err := os.ReadFile(r.key)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s is not PEM", r.key)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s can't be read as a private key", r.key)
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s is no Ed25519 key", r.key)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	kept, err := os.ReadFile(filepath.Join(r.top, publicKey))
	if err != nil {
		return nil, fmt.Errorf("the tree has no %s: make it of the key with openssl pkey -in KEY -pubout, and commit it", publicKey)
	}
	if block, _ := pem.Decode(kept); block == nil || !bytes.Equal(block.Bytes, der) {
		return nil, fmt.Errorf("%s is another key than %s", r.key, publicKey)
	}
	return key, nil
}

// sign signs the digests of everything that was made, including the provenance.
func (r *release) sign() error {
	key, err := r.signer()
	if key == nil {
		return err
	}
	sums, err := os.ReadFile(filepath.Join(r.out, "SHA256SUMS"))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS.sig"), ed25519.Sign(key, sums), 0o644)
}

// resource is something that a build used or made, as in-toto describes it.
type resource struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest"`
}

// statement is an in-toto statement with a predicate of SLSA 1.
type statement struct {
	Type          string     `json:"_type"`
	Subject       []resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     struct {
		BuildDefinition struct {
			BuildType            string            `json:"buildType"`
			ExternalParameters   map[string]string `json:"externalParameters"`
			ResolvedDependencies []resource        `json:"resolvedDependencies"`
		} `json:"buildDefinition"`
		RunDetails struct {
			Builder  map[string]string `json:"builder"`
			Metadata map[string]string `json:"metadata"`
		} `json:"runDetails"`
	} `json:"predicate"`
}

// partsOf lists the modules in binaries, each once, with the digest of go.sum.
func (r *release) partsOf(binaries []string) (parts []resource, err error) {
	known := map[string]bool{}
	for _, name := range binaries {
		info, err := buildinfo.ReadFile(filepath.Join(r.out, name))
		if err != nil {
			return nil, err
		}
		for _, m := range info.Deps {
			raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:"))
			if uri := "pkg:golang/" + m.Path + "@" + m.Version; err == nil && len(raw) > 0 && !known[uri] {
				known[uri] = true
				parts = append(parts, resource{URI: uri, Digest: map[string]string{"dirHash": hex.EncodeToString(raw)}})
			}
		}
	}
	slices.SortFunc(parts, func(a, b resource) int { return strings.Compare(a.URI, b.URI) })
	return parts, nil
}

// writeProvenance writes what the files were made of, and with which Go.
func (r *release) writeProvenance(subjects, parts []resource) error {
	commit, err := r.git("rev-parse", r.version+"^{commit}")
	if err != nil {
		return err
	}
	var s statement
	s.Type, s.PredicateType, s.Subject = "https://in-toto.io/Statement/v1", "https://slsa.dev/provenance/v1", subjects
	d := &s.Predicate.BuildDefinition
	d.BuildType = "https://" + r.modules[0].path + "/blob/main/docs/releasing.md"
	d.ExternalParameters = map[string]string{"package": r.command() + "@" + r.version, "flags": "-trimpath -ldflags=-w", "CGO_ENABLED": "0"}
	d.ResolvedDependencies = []resource{
		{URI: "git+https://" + r.modules[0].path + "@refs/tags/" + r.version, Digest: map[string]string{"gitCommit": commit}},
	}
	d.ResolvedDependencies = append(d.ResolvedDependencies, parts...)
	s.Predicate.RunDetails.Builder = map[string]string{"id": "https://" + r.modules[0].path + "/tree/main/tools/release", "go": runtime.Version()}
	s.Predicate.RunDetails.Metadata = map[string]string{"invocationId": r.version, "finishedOn": r.date.Format("2006-01-02T15:04:05Z")}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, provenance), append(text, '\n'), 0o644)
}

// image matches the images that container files name.
var image = regexp.MustCompile(`(?m)^\s*(?:FROM|image:)\s+(\S+)`)

// images checks that every image is named by its digest: tomorrow a tag can mean another
// image.
func (r *release) images() error {
	var open []string
	for _, name := range []string{"Dockerfile", "docker-compose.yml"} {
		text, err := os.ReadFile(filepath.Join(r.top, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for _, m := range image.FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(m[1], "@sha256:") && !slices.Contains(open, m[1]) {
				open = append(open, m[1])
			}
		}
	}
	if len(open) == 0 {
		return nil
	}
	err := fmt.Errorf("images without a digest: %s; write NAME:TAG@sha256:… with what docker buildx imagetools inspect NAME:TAG says", strings.Join(open, ", "))
	if r.quick {
		fmt.Println("would be refused:", err)
		return nil
	}
	return err
}
