package agent

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limits of artifacts.
const (
	// MaxArtifacts is the most artifacts, by name, that a run knows of its session. They also share
	// 32 kB of its state: that is about 90 artifacts, and fewer with long names and session ids.
	// Each may have any number of versions.
	MaxArtifacts = 100
	// MaxArtifactName is the longest name of an artifact, in bytes.
	MaxArtifactName = 128
)

// Artifact is one version of a named result of a run. It is a file of the session: the bytes
// are in the store, and client.Client.File reads them. Its Name is the artifact's.
type Artifact struct {
	File
	// Version counts from 1. Saving other bytes under the name makes a higher version. No version
	// of a name is used twice in a session, also if a run begins from a checkpoint of it. A fork
	// from another session counts on from the version at its checkpoint, so there a version may
	// be listed twice; the last one counts. Temporal's reset of a workflow uses the versions after
	// the reset point again.
	Version int `json:"version"`
	// Run, Agent and Call say who saved it.
	Run   string `json:"run"`
	Agent string `json:"agent"`
	Call  string `json:"call"`
}

// String returns the artifact's name, version, type and size, for people: "report.md version 2
// (text/markdown, 5120 bytes)".
func (a *Artifact) String() string {
	return fmt.Sprintf("%s version %d (%s, %d bytes)", a.Label(), a.Version, a.MediaType, a.Size)
}

// Label returns the artifact's name without what could look like the runtime's words.
func (a *Artifact) Label() string { return strings.Map(nameRune, a.Name) }

// Check returns a [CodeInvalidInput] error, with the path of the field, for an artifact that no
// run can have saved.
func (a *Artifact) Check() error {
	if err := CheckArtifactName(a.Name); err != nil {
		return err
	}
	if a.Version < 1 || len(a.Run) > maxFileName || len(a.Agent) > maxFileName || len(a.Call) > maxFileName {
		return Errorf(CodeInvalidInput, "version, run, agent and call are not those of an artifact").WithPath("version")
	}
	return a.File.Check()
}

// CheckArtifactName returns a [CodeInvalidInput] error for a name that no artifact can have. A name
// has 1 to [MaxArtifactName] bytes of UTF-8, no slashes, backslashes or control characters, and
// no spaces at its ends; "." and ".." are none.
func CheckArtifactName(name string) error {
	// Only what is the same in every build: a workflow decides by it.
	control := func(r rune) bool { return r < ' ' || r == 0x7f || r == '/' || r == '\\' }
	if name == "" || name == "." || name == ".." || len(name) > MaxArtifactName || !utf8.ValidString(name) || strings.ContainsFunc(name, control) || strings.Trim(name, " ") != name {
		return Errorf(CodeInvalidInput, "an artifact needs a name like report.md: without folders, at most %d bytes long", MaxArtifactName).WithPath("name")
	}
	return nil
}

// artifactsSize returns about how many bytes artifacts take in JSON.
func artifactsSize(list []Artifact) (n int) {
	for _, a := range list {
		n += 256 + len(a.Session) + len(a.Name) + len(a.MediaType) + len(a.Agent)
	}
	return n
}
