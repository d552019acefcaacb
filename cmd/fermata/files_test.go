package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/internal/standin"
)

// Files of a session are listed, and saved by their name or digest.
func TestFiles(t *testing.T) {
	s := scripted(t, talker()).works(pay(), idle())
	dir := t.TempDir()
	run, err := s.Start(t.Context(), "talker", "hello", &fermata.StartOptions{Session: s.session("a"), Files: []fermata.FileInput{
		{Name: "chart.png", Data: standin.Picture()}, {Name: "a\u202etxt", Data: []byte("\x1b[2Jone")},
	}})
	require.NoError(t, err)
	s.rests(run)
	_, err = s.Send(t.Context(), run.Session, "hello", &fermata.SendOptions{Files: []fermata.FileInput{
		{Name: "chart.png", Data: standin.Picture()}, {Name: "b.txt", Data: []byte("first")}, {Name: "b.txt", Data: []byte("second")},
	}})
	require.NoError(t, err)
	require.Zero(t, s.run("wait", run.Session).exit)

	r := s.run("files", run.Session)
	require.Zero(t, r.exit, r.err)
	require.Regexp(t, `(?s)^EVENT +TURN +FROM +DIGEST +BYTES +TYPE +NAME\n\d+ +\d+ +user +[0-9a-f]{12} +68 +image/png +chart.png\n.* 7 +text/plain .*a\\u202etxt\n.*chart.png\n.* 5 .*b.txt\n.* 6 .*b.txt\n$`, r.out)
	all := outlines[fileLine](t, s.run("files", run.Session, "--json").out)
	require.Len(t, all, 5)
	require.Equal(t, all[0].File, all[2].File)
	require.Less(t, all[0].Seq, all[2].Seq)

	saved := filepath.Join(dir, "saved")
	r = s.run("files", run.Session, "chart.png", "-o", saved)
	require.Zero(t, r.exit, r.err)
	require.Equal(t, saved+": chart.png#9864fe5a (image/png, 68 bytes)\n", r.out)
	require.Zero(t, s.run("files", run.Session, "chart.png#9864fe5a", "-o", saved, "--force").exit, "a model's name for it")
	data, err := os.ReadFile(saved)
	require.NoError(t, err)
	require.Equal(t, standin.Picture(), data)
	info, err := os.Stat(saved)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	s.fails(2, "exists already", "files", run.Session, "b.txt", "-o", saved)
	s.fails(2, `several files of session `+run.Session+` are "b.txt": name one by its digest, `+all[3].Digest[:12]+", "+all[4].Digest[:12], "files", run.Session, "b.txt", "-o", saved, "--force")
	r = s.run("files", run.Session, all[4].Digest[:8], "-o", saved, "--force", "--json")
	require.Equal(t, fileLine{1, all[4].SessionFile, saved}, lastLine[fileLine](t, r.out), r.err)
	data, err = os.ReadFile(saved)
	require.NoError(t, err)
	require.Equal(t, "second", string(data))
	require.Equal(t, "\x1b[2Jone", s.run("files", run.Session, all[1].Digest, "-o", "-").out, "a program gets the bytes")

	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(saved, link))
	s.fails(2, "is not a regular file", "files", run.Session, "chart.png", "-o", link, "--force")
	s.fails(2, "without folders", "files", run.Session, "../chart.png", "-o", saved)
	s.fails(2, "with -o", "files", run.Session, "chart.png")
	s.fails(2, "for one file", "files", run.Session, "-o", saved)
	s.fails(6, `shows a file "d.png"`, "files", run.Session, "d.png", "-o", filepath.Join(dir, "d.png"))
	s.fails(6, "[not_found]", "files", s.session("nobody"))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 2, "what failed leaves nothing")

	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	defer terminal.Close()
	var errs bytes.Buffer
	require.Equal(t, 2, newCLI(strings.NewReader(""), terminal, &errs).execute(t.Context(), append([]string{"files", run.Session, "chart.png", "-o", "-"}, s.flags...)))
	require.Contains(t, errs.String(), "standard output is a terminal")
}

// A file that is sent to a live run reaches it.
func TestSendAFileToALiveRun(t *testing.T) {
	slow, dug := dig()
	s := scripted(t, talker()).works(pay(), slow)
	run, err := s.Start(t.Context(), "talker", "work", &fermata.StartOptions{Session: s.session("a")})
	require.NoError(t, err)
	chart := filepath.Join(t.TempDir(), "chart.png")
	require.NoError(t, os.WriteFile(chart, standin.Picture(), 0o600))
	r := s.run("send", run.Session, "faster", "--file", chart)
	require.Zero(t, r.exit, r.err)
	dug()
	s.rests(run)
	all := outlines[fileLine](t, s.run("files", run.Session, "--json").out)
	require.Len(t, all, 1)
	require.Equal(t, "chart.png", all[0].Name)
	s.fails(2, "21 files are named", append([]string{"send", run.Session, "look"}, strings.Fields(strings.Repeat("--file "+chart+" ", 21))...)...)
}
