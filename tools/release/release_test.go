package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/stretchr/testify/require"
)

const (
	root = "example.com/house/music"
	log  = "# Changelog\n\n## Unreleased\n\n- A note.\n\n## 0.1.0 - 2026-01-02\n\n- The first.\n"
)

// house is a tree of three modules, as committed, and a release of it: the command requires
// the root by path, and a player requires the command, and so replaces both.
func house(t *testing.T) *release {
	t.Helper()
	top := t.TempDir()
	for name, text := range map[string]string{
		"CHANGELOG.md":       log,
		"go.work":            "go 1.26.0\n\nuse (\n\t./player\n\t./cmd/fermata\n\t.\n)\n",
		"go.mod":             "module " + root + "\n\ngo 1.26.0\n",
		"LICENSE":            "As you like.\n",
		"note/doc.go":        "package note\n\nconst A = 440\n",
		"cmd/fermata/go.mod": "module " + root + "/cmd/fermata\n\ngo 1.26.0\n\nrequire " + root + " v0.0.0\n\nreplace " + root + " => ../../\n",
		"cmd/fermata/doc.go": "package main\n\nimport \"" + root + "/note\"\n\nfunc main() { println(note.A) }\n",
		"player/go.mod":      "module " + root + "/player\n\ngo 1.26.0\n\nrequire " + root + "/cmd/fermata v0.0.0\n\nreplace (\n\t" + root + " => ../\n\t" + root + "/cmd/fermata => ../cmd/fermata\n)\n",
		"cmd/fermata/a/a.go": "package a\n",
		"player/doc.go":      "package player\n\nimport _ \"" + root + "/cmd/fermata/a\"\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(top, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(top, name), []byte(text), 0o644))
	}
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		t.Setenv("GIT_"+who+"_NAME", "a test")
		t.Setenv("GIT_"+who+"_EMAIL", "test@localhost")
	}
	run(t, top, "git", "init", "--quiet")
	run(t, top, "git", "add", "--all")
	run(t, top, "git", "commit", "--quiet", "--message", "A house")
	run(t, top, "git", "tag", "v0.1.0")
	cache := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(cache, "cache", "download"), 0o755))
	return &release{
		version: "v0.2.0", top: top, out: filepath.Join(t.TempDir(), "out"), quick: true,
		date: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC), proxies: "off", cache: cache,
	}
}

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	said, err := command(dir, nil, name, args...)
	require.NoError(t, err)
	return said
}

func TestWhatIsNotReleased(t *testing.T) {
	r := house(t)
	require.NoError(t, r.check())
	for version, why := range map[string]string{
		"0.2.0": "no version such as", "v0.2": "no version such as", "v0.2.0+linux": "no version such as",
		"v0.1.0": "not greater than v0.1.0", "v0.1.0-rc.1": "not greater than v0.1.0", "v2.0.0": "should be v0 or v1",
	} {
		again := *r
		again.version = version
		require.ErrorContains(t, again.check(), why, version)
	}
	for text, why := range map[string]string{
		strings.Replace(log, "Unreleased", "Next", 1): "no section Unreleased",
		strings.Replace(log, "- A note.\n\n", "", 1):  "nothing under Unreleased",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(r.top, "CHANGELOG.md"), []byte(text), 0o644))
		require.ErrorContains(t, r.check(), "the tree has changes")
		run(t, r.top, "git", "commit", "--quiet", "--all", "--message", "Changelog")
		require.ErrorContains(t, r.check(), why)
	}
	require.NoError(t, os.MkdirAll(r.out, 0o755))
	require.ErrorContains(t, r.check(), "is there: remove it")
}

// What is tagged can be had by its version alone, and the tree stays as it was.
func TestTheCommits(t *testing.T) {
	r := house(t)
	before := run(t, r.top, "git", "log", "--format=%H %D")
	require.NoError(t, r.check())
	require.NoError(t, r.clone())
	require.NoError(t, r.commit())

	require.Equal(t, []string{"v0.2.0", "cmd/fermata/v0.2.0", "player/v0.2.0"}, r.tags())
	require.Equal(t, "cmd/fermata/v0.2.0 tag\nplayer/v0.2.0 tag\nv0.1.0 commit\nv0.2.0 tag", run(t, r.source(), "git", "tag", "--format=%(refname:short) %(objecttype)"))
	for name, requires := range map[string]string{"cmd/fermata": root, "player": root + "/cmd/fermata"} {
		released := run(t, r.source(), "git", "show", "v0.2.0:"+name+"/go.mod")
		require.Contains(t, released, requires+" v0.2.0")
		require.NotContains(t, released, "replace")
	}
	require.Contains(t, run(t, r.source(), "git", "show", "v0.2.0:CHANGELOG.md"), "## Unreleased\n\n## 0.2.0 - 2026-03-04\n\n- A note.\n\n## 0.1.0")
	require.Equal(t, "CHANGELOG.md", run(t, r.source(), "git", "diff", "--name-only", "v0.1.0", "HEAD"), "work goes on by path")
	require.Equal(t, "v0.2.0", run(t, r.source(), "git", "describe", "--match", "v*", "--abbrev=0"), "builds of later commits count from the release")
	require.Equal(t, before, run(t, r.top, "git", "log", "--format=%H %D"))
	require.Empty(t, run(t, r.top, "git", "status", "--porcelain"))

	r.quick = false // the second build begins with nothing, and is the same
	require.NoError(t, r.binary("windows/arm64", "play.exe"))
	require.Contains(t, run(t, r.out, "go", "version", "-m", "play.exe"), "mod\t"+root+"/cmd/fermata\tv0.2.0\th1:")
}

func TestWhatStillReplacesIsNotReleased(t *testing.T) {
	r := house(t)
	gomod := filepath.Join(r.top, "cmd", "fermata", "go.mod")
	text, err := os.ReadFile(gomod)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(gomod, append(text, "replace example.com/other => ../other\n"...), 0o644))
	all, err := modules(r.top)
	require.NoError(t, err)
	_, err = all[1].pin(all, r.version)
	require.ErrorContains(t, err, "replaces example.com/other")
}

func TestTheBillOfMaterials(t *testing.T) {
	info := &debug.BuildInfo{
		GoVersion: "go1.26.8",
		Main:      debug.Module{Path: root + "/cmd/fermata", Version: "v0.2.0"},
		Deps:      []*debug.Module{{Path: "github.com/BurntSushi/Toml", Version: "v1.0.0+incompatible", Sum: "h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}},
		Settings:  []debug.BuildSetting{{Key: "GOOS", Value: "linux"}},
	}
	var out bytes.Buffer
	require.NoError(t, cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).EncodeVersion(billOf(info, [32]byte{1}, time.Unix(0, 0).UTC()), cdx.SpecVersion1_6))
	var said struct {
		SpecVersion, SerialNumber string
		Metadata                  struct {
			Component struct{ Purl, Version string }
		}
		Components []struct {
			Name, Purl string
			Hashes     []struct{ Content string }
		}
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &said))
	require.Equal(t, "1.6", said.SpecVersion)
	require.Equal(t, "urn:uuid:01000000-0000-8000-8000-000000000000", said.SerialNumber)
	require.Equal(t, "pkg:golang/example.com/house/music/cmd/fermata@v0.2.0", said.Metadata.Component.Purl)
	require.Len(t, said.Components, 2)
	require.Equal(t, "pkg:golang/stdlib@1.26.8", said.Components[0].Purl)
	require.Equal(t, "github.com/BurntSushi/Toml", said.Components[1].Name)
	require.Equal(t, "pkg:golang/github.com/burntsushi/toml@v1.0.0%2Bincompatible", said.Components[1].Purl)
	require.Equal(t, strings.Repeat("0", 64), said.Components[1].Hashes[0].Content)
}

// pair is a new key in a file, and its other half in PEM.
func pair(t *testing.T) (file string, public []byte) {
	t.Helper()
	open, key, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	der, err := x509.MarshalPKIXPublicKey(open)
	require.NoError(t, err)
	file = filepath.Join(t.TempDir(), "release.key")
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	return file, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// A release is signed with the key that the tree names, and names images by digest.
func TestWhatIsNotSigned(t *testing.T) {
	r := house(t)
	r.quick = false
	require.ErrorContains(t, r.check(), "a release is signed")
	file, public := pair(t)
	r.key = file
	require.ErrorContains(t, r.check(), "the tree has no docs/release.pub")
	_, other := pair(t)
	for _, one := range [][2]string{{string(other), "is another key than docs/release.pub"}, {string(public), ""}} {
		text, why := one[0], one[1]
		require.NoError(t, os.MkdirAll(filepath.Join(r.top, "docs"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(r.top, publicKey), []byte(text), 0o644))
		run(t, r.top, "git", "add", "--all")
		run(t, r.top, "git", "commit", "--quiet", "--message", "A key")
		if why == "" {
			require.NoError(t, r.check())
		} else {
			require.ErrorContains(t, r.check(), why)
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(r.top, publicKey), public, 0o644))
	for _, one := range [][2]string{
		{"FROM golang:1.26.8 AS build\nFROM debian@sha256:00\n", "images without a digest: golang:1.26.8; write"},
		{"FROM golang:1.26.8@sha256:00 AS build\n", ""},
	} {
		text, why := one[0], one[1]
		require.NoError(t, os.WriteFile(filepath.Join(r.top, "Dockerfile"), []byte(text), 0o644))
		run(t, r.top, "git", "add", "--all")
		run(t, r.top, "git", "commit", "--quiet", "--allow-empty", "--message", "Images")
		if why == "" {
			require.NoError(t, r.check())
		} else {
			require.ErrorContains(t, r.check(), why)
		}
	}
	require.NoError(t, os.WriteFile(file, []byte("no key"), 0o600))
	require.ErrorContains(t, r.check(), "is not PEM")
}

// The command of docs/releasing.md verifies what was signed, and nothing else.
func TestTheSignature(t *testing.T) {
	r := house(t)
	file, public := pair(t)
	require.NoError(t, os.MkdirAll(filepath.Join(r.top, "docs"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(r.top, publicKey), public, 0o644))
	run(t, r.top, "git", "add", "--all")
	run(t, r.top, "git", "commit", "--quiet", "--message", "A key")
	r.key = file
	require.NoError(t, r.check())
	require.NoError(t, r.clone())
	require.NoError(t, r.commit())
	require.NoError(t, r.binary(host, "play"))
	parts, err := r.partsOf([]string{"play"})
	require.NoError(t, err)
	require.Equal(t, "pkg:golang/"+root+"@v0.2.0", parts[0].URI)
	require.NoError(t, r.writeProvenance([]resource{{Name: "play", Digest: map[string]string{"sha256": "00"}}}, parts))
	text, err := os.ReadFile(filepath.Join(r.out, provenance))
	require.NoError(t, err)
	require.Contains(t, string(text), run(t, r.source(), "git", "rev-parse", "v0.2.0^{commit}"))

	require.NoError(t, os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte("00  play\n"), 0o644))
	require.NoError(t, r.sign())
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("openssl is missing")
	}
	verify := []string{"pkeyutl", "-verify", "-pubin", "-inkey", filepath.Join(r.top, publicKey), "-rawin", "-in", "SHA256SUMS", "-sigfile", "SHA256SUMS.sig"}
	run(t, r.out, "openssl", verify...)
	require.NoError(t, os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte("01  play\n"), 0o644))
	_, err = command(r.out, nil, "openssl", verify...)
	require.Error(t, err)
}
