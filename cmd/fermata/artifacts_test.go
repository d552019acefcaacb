package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite"
)

// writer saves a text as report.md.
func writer() role {
	saves := func(match, content string) testsuite.Reply {
		return testsuite.Reply{Match: match, Calls: []testsuite.Call{{Tool: agent.SaveArtifactTool, Arguments: map[string]any{"name": "report.md", "content": content}}}}
	}
	return role{
		agent.Definition{Name: "writer", Tools: []string{agent.SaveArtifactTool}},
		[]testsuite.Reply{saves("^one$", "# One"), saves("^two$", "\x1b[2J# Two"), {Match: "(?s).*", Text: "Done."}},
	}
}

// Artifacts are listed with their versions, and saved by name; a fork begins with them or without.
func TestArtifacts(t *testing.T) {
	s := scripted(t, writer()).works()
	session, dir := s.session("a"), t.TempDir()
	r := s.run("run", "writer", "one", "--session", session)
	require.Contains(t, r.out, "artifact report.md version 1 (text/markdown, 5 bytes)\ncompleted", r.err)
	r = s.run("run", "writer", "two", "--session", session)
	require.Contains(t, r.out, "  saved report.md version 2 (text/markdown, 9 bytes)\n", r.err)
	require.Contains(t, r.out, "artifact report.md version 2 (text/markdown, 9 bytes)\ncompleted")

	r = s.run("artifacts", session)
	require.Zero(t, r.exit, r.err)
	require.Regexp(t, `^NAME +VERSION +TURN +CALL +AGENT +DIGEST +BYTES +TYPE\nreport.md +1 +1 +t1.1 +writer +[0-9a-f]{12} +5 +text/markdown\nreport.md +2 \* +1 +t1.1 +writer +[0-9a-f]{12} +9 +text/markdown\n$`, r.out)
	all := outlines[artifactLine](t, s.run("artifacts", session, "--json").out)
	require.Len(t, all, 2)
	require.Equal(t, []bool{false, true}, []bool{all[0].Current, all[1].Current})

	saved := filepath.Join(dir, "saved")
	r = s.run("artifacts", session, "report.md", "-o", saved)
	require.Zero(t, r.exit, r.err)
	require.Equal(t, saved+": report.md version 2 (text/markdown, 9 bytes)\n", r.out)
	data, err := os.ReadFile(saved)
	require.NoError(t, err)
	require.Equal(t, "\x1b[2J# Two", string(data), "a program gets the bytes")
	s.fails(2, "exists already", "artifacts", session, "report.md", "-o", saved)
	r = s.run("artifacts", session, "report.md", "--version", "1", "-o", saved, "--force", "--json")
	require.Equal(t, artifactLine{1, all[0].SessionArtifact, saved}, lastLine[artifactLine](t, r.out), r.err)
	require.Equal(t, "# One", s.run("artifacts", session, "report.md", "--version", "1", "-o", "-").out)

	s.fails(6, "has no version 3; it has 1, 2", "artifacts", session, "report.md", "--version", "3", "-o", "-")
	s.fails(6, `has no artifact "other.md"`, "artifacts", session, "other.md", "-o", "-")
	s.fails(2, "counts from 1", "artifacts", session, "report.md", "--version", "0", "-o", "-")
	s.fails(2, "without folders", "artifacts", session, "../report.md", "-o", "-")
	s.fails(2, "with -o", "artifacts", session, "report.md")
	s.fails(2, "for one artifact", "artifacts", session, "-o", saved)
	s.fails(6, "[not_found]", "artifacts", s.session("nobody"))

	r = s.run("fork", session, "--drop-artifacts", "--message", "go on", "--yes")
	require.Zero(t, r.exit, r.err)
	require.NotContains(t, r.out, "artifact report.md")
	s.fails(6, "began without \"report.md\": name a version with --version (1, 2)", "artifacts", session, "report.md", "-o", "-")
	require.Contains(t, s.run("events", session).out, "report.md version 2 (text/markdown, 9 bytes)")
}
