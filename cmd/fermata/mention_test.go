package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/internal/standin"
)

// What is named with @ is a file, or text, or refused.
func TestMentions(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Chdir(dir)
	require.NoError(t, os.Mkdir("folder.d", 0o700))
	for _, name := range []string{"a.png", "my b.png", "Makefile", "folder.d/c"} {
		writeFile(t, name, "x")
	}
	require.NoError(t, os.Mkdir(".ssh", 0o700))
	writeFile(t, ".ssh/work", "x")
	require.NoError(t, os.Symlink(".ssh/work", "page"))
	for text, want := range map[string][]string{
		"what is in @a.png?":                          {"a.png"},
		"@a.png, @a.png and @Makefile":                {"a.png", "Makefile"},
		`compare @"my b.png" with @'folder.d/c'`:      {"my b.png", "folder.d/c"},
		"@~/a.png":                                    {filepath.Join(dir, "a.png")},
		"ask @ana, ana@acme.com or @ana@acme.social.": nil,
		"see @folder and @ alone @":                   nil,
	} {
		said, paths, err := mentions(text)
		require.NoError(t, err, text)
		require.Equal(t, text, said)
		require.Equal(t, want, paths, text)
	}
	said, paths, err := mentions("use @@types/node and @a.png")
	require.NoError(t, err)
	require.Equal(t, "use @types/node and @a.png", said)
	require.Equal(t, []string{"a.png"}, paths)
	for text, why := range map[string]string{
		"see @b.png!": "@b.png! is not a file; write @@", `see @"Makefile2"`: "is not a file", `see @"my b.png`: "is not a file", "@.ssh/work": "usually holds secrets", "see @page": "usually holds secrets", "see @./folder.d": "is no regular file", "see @/dev/zero": "is no regular file", "@types/node": "is not a file",
	} {
		_, _, err := mentions(text)
		require.ErrorContains(t, err, "nothing was sent: ", text)
		require.ErrorContains(t, err, why)
	}
}

// A message in a chat shows files to the model.
func TestChatShowsFiles(t *testing.T) {
	s := scripted(t, talker()).works(pay(), idle())
	id, dir := s.session("a"), t.TempDir()
	chart := filepath.Join(dir, "chart.png")
	require.NoError(t, os.WriteFile(chart, standin.Picture(), 0o600))
	d := s.sits("chat", "talker", "--session", id)
	d.answers("> ", "look at @"+chart+"x").sees("[invalid_input] nothing was sent: @" + chart + "x is not a file")
	d.answers("> ", "look at @"+chart+".").sees("shows chart.png, 68 bytes").sees("I see.").sees("completed")
	d.answers("> ", "ask").answers("your answer: ", "the one in @"+chart+"x").sees("nothing was sent").answers("your answer: ", "the one in @"+chart).sees("shows chart.png").sees("I see.").sees("completed")
	d.answers("> ", "/queue mail ana@acme.com").sees("completed")
	d.answers("> ", "/quit")
	d.ends(0)
	require.Len(t, outlines[fileLine](t, s.run("files", id, "--json").out), 2)
	require.NotContains(t, s.run("transcript", id).out, "chart.pngx")

	r := s.script([]string{"see @" + chart}, "chat", "--session", id)
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.out, "standard input is no terminal, so @ stays text")
	require.Len(t, outlines[fileLine](t, s.run("files", id, "--json").out), 2, "a script's lines may come from anybody")
}
