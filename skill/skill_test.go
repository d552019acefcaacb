package skill

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// write makes files below a directory.
func write(t *testing.T, dir string, files map[string]string) string {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

func front(name, more string) string {
	return "---\nname: " + name + "\ndescription: Does things.\n" + more + "---\nDo it.\n"
}

// A skill as others write it is read as it is: fields that are not known here are left, tools
// in other agents' names are those of Fermata, and each form of a list is taken (HA-132).
func TestASkillOfOthers(t *testing.T) {
	dir := write(t, t.TempDir(), map[string]string{
		"pdf/SKILL.md":        "\uFEFF---\r\nname: pdf\r\ndescription: >\r\n  Extract text from PDF files,\r\n  and fill forms.\r\nlicense: Apache-2.0\r\nmetadata:\r\n  version: \"1.0\"\r\nallowed-tools: Read, Bash(python *) mcp__docs__find\r\npaths: [\"**/*.pdf\"]\r\ncolour: red\r\n---\r\n# PDF\r\n\r\nUse the script.\r\n",
		"pdf/scripts/fill.py": "print(1)\n", "pdf/.git/HEAD": "x", "notes.txt": "no skill",
	})
	all, err := ReadDirs(dir)
	require.NoError(t, err)
	require.Len(t, all, 1)
	s := all[0]
	require.Equal(t, "Extract text from PDF files, and fill forms.", s.Description)
	require.Equal(t, []string{"fs_read", "fs_list", "shell_run", "docs__find"}, s.Tools)
	require.Equal(t, []string{"Read", "Bash(python *)", "mcp__docs__find"}, s.AllowedTools)
	require.Equal(t, "# PDF\n\nUse the script.", s.Instructions)
	require.Equal(t, []string{"1.0", "Apache-2.0"}, []string{s.Metadata["version"], s.License})
	require.Contains(t, s.Text(), "scripts/fill.py")
	require.NotContains(t, s.Text(), "HEAD")
	require.Len(t, s.Remarks, 1)
	text, err := s.ReadFile(t.Context(), "scripts/../scripts/fill.py")
	require.NoError(t, err)
	require.Equal(t, "print(1)\n", text)

	// The digest covers every file, and what was not there when it was made is not shown.
	before := s.Digest
	write(t, dir, map[string]string{"pdf/scripts/fill.py": "print(2)\n"})
	_, err = s.ReadFile(t.Context(), "scripts/fill.py")
	require.ErrorIs(t, err, agent.CodeSkillChanged)
	for _, name := range []string{"new.txt", "../notes.txt", "/etc/passwd", ".git/HEAD", ""} {
		_, err = s.ReadFile(t.Context(), name)
		require.ErrorIs(t, err, agent.CodeNotFound, name)
	}
	again, err := Read(filepath.Join(dir, "pdf"))
	require.NoError(t, err)
	require.NotEqual(t, before, again.Digest)
}

// What published skills get wrong is read as it is meant, with a remark: a colon without
// quotes, settings as metadata, and a directory with another name (HA-132).
func TestFaultsOfPublishedSkills(t *testing.T) {
	dir := write(t, t.TempDir(), map[string]string{
		"package/SKILL.md": "---\nname: pdf\ndescription: Fill forms: it's quick. Use when: asked.\nmetadata: {version: 1.5, claw: {needs: [python3]}}\n---\nx",
	})
	s, err := Read(filepath.Join(dir, "package"))
	require.NoError(t, err)
	require.Equal(t, []string{"pdf", "Fill forms: it's quick. Use when: asked."}, []string{s.Name, s.Description})
	require.Equal(t, map[string]string{"version": "1.5", "claw": `{"needs":["python3"]}`}, s.Metadata)
	require.Len(t, s.Remarks, 2)
	require.Contains(t, s.Remarks[0], "put quotes around texts that have a colon")
	require.Contains(t, s.Remarks[1], `its directory is called "package"`)
}

// What a directory must not have is refused, with words that say what to do.
func TestHostileSkills(t *testing.T) {
	outside := write(t, t.TempDir(), map[string]string{"secret": "s"})
	link := func(to, name string) func(*testing.T, string) {
		return func(t *testing.T, dir string) { require.NoError(t, os.Symlink(to, filepath.Join(dir, name))) }
	}
	for name, c := range map[string]struct {
		text  string
		spoil func(*testing.T, string)
		want  string
	}{
		"no front matter":      {"Do it.", nil, "must begin with a line ---"},
		"no end":               {"---\nname: a\n", nil, "has no end"},
		"no YAML":              {"---\nname: [\n---\nx", nil, "no valid YAML"},
		"a name with capitals": {front("A", ""), nil, "no name of a skill"},
		"a name that climbs":   {front("../a", ""), nil, "no name of a skill"},
		"no description":       {"---\nname: a\n---\nx", nil, "description is missing"},
		"no instructions":      {"---\nname: a\ndescription: x\n---\n", nil, "no instructions"},
		"a long description":   {"---\nname: a\ndescription: " + strings.Repeat("x", 1025) + "\n---\nx", nil, "1025 characters"},
		"a hidden mark":        {"---\nname: a\ndescription: \"x \\u200by\"\n---\nx", nil, `'\u200b'`},
		"a steering character": {"---\nname: a\ndescription: \"x \\e[2J\"\n---\nx", nil, `'\x1b'`},
		"a mark of direction":  {"---\nname: a\ndescription: \"x \\u202e\"\n---\nx", nil, `'\u202e'`},
		"tags in the text":     {front("a", "") + "x" + string(rune(0xE0041)), nil, "SKILL.md: line 6, column 2: the character U+E0041"},
		"an override":          {front("a", "") + "x\u202e", nil, "U+202E"},
		"selectors of bytes":   {front("a", "") + "x" + string(rune(0xE0101)), nil, "U+E0101"},
		"a terminal's control": {front("a", "") + "x\x1b[2J", nil, "U+001B"},
		"a mark in a name":     {front("a", ""), func(t *testing.T, dir string) { write(t, dir, map[string]string{"x\u200by": "x"}) }, "no name of a file"},
		"nobody's":             {front("a", "disable-model-invocation: true\nuser-invocable: false\n"), nil, "nobody"},
		"long instructions":    {front("a", "") + strings.Repeat("x", MaxInstructions), nil, "move a part"},
		"a text long in JSON":  {front("a", "") + strings.Repeat("<", MaxInstructions-100), nil, "bytes as JSON"},
		"aliases without end":  {"---\nname: a\ndescription: x\nmetadata: &a\n  b: *a\n---\nx", nil, "no valid YAML"},
		"a link out":           {front("a", ""), link(filepath.Join(outside, "secret"), "notes.md"), "no link may lead out"},
		"a relative link out":  {front("a", ""), link("../../x", "notes.md"), "notes.md"},
		"a link to a folder":   {front("a", ""), link(".", "loop"), "no regular file"},
		"a huge file": {front("a", ""), func(t *testing.T, dir string) {
			require.NoError(t, os.Truncate(write(t, dir, map[string]string{"big": "x"})+"/big", MaxFile+1))
		}, "more than"},
		"a deep file": {front("a", ""), func(t *testing.T, dir string) {
			write(t, dir, map[string]string{strings.Repeat("d/", MaxDepth) + "x": "x"})
		}, "deep"},
		"a name of two lines": {front("a", ""), func(t *testing.T, dir string) { write(t, dir, map[string]string{"x\ny": "x"}) }, "no name of a file"},
		"many files": {front("a", ""), func(t *testing.T, dir string) {
			for i := range MaxFiles {
				write(t, dir, map[string]string{"f" + strings.Repeat("x", i%200) + string(rune('a'+i/200)): ""})
			}
		}, "more than 512 files"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := write(t, t.TempDir(), map[string]string{"a/SKILL.md": c.text})
			if c.spoil != nil {
				c.spoil(t, filepath.Join(dir, "a"))
			}
			_, err := Read(filepath.Join(dir, "a"))
			require.ErrorIs(t, err, agent.CodeInvalidInput)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), dir, "an error names no path of this machine")
		})
	}
}

// A model reads what a reader sees: characters without width that come with copied texts are left
// out, and the check says where. Emoji and scripts that need joiners stay as they are.
func TestATextIsAsItLooks(t *testing.T) {
	const shown = "👩\u200d💻 ❤\ufe0f\u200d🔥 #\ufe0f\u20e3 می\u200cخواهم"
	dir := write(t, t.TempDir(), map[string]string{
		"a/SKILL.md": "\uFEFF" + front("a", "") + shown + "\nzero\u200bwidth so\u00adft a\u200db 😀\ufe00\ufe01\ufe02\u2028end",
		"a/bom.md":   "\uFEFFall\u2060 of it", "a/tags.md": "x\n" + string(rune(0xE0041)), "a/data.bin": "\x00\u202e", "a/code.txt": "plain",
	})
	s, err := Read(filepath.Join(dir, "a"))
	require.NoError(t, err)
	require.Equal(t, "Do it.\n"+shown+"\nzerowidth soft ab 😀\ufe00\nend", s.Instructions)
	require.Equal(t, []string{
		"bom.md: line 1, column 4: the character U+2060 cannot be seen; left out in all: 1",
		"tags.md is not shown to a model: line 2, column 1: the character U+E0041 hides or reorders text; take it out",
		"SKILL.md: line 7, column 5: the character U+200B cannot be seen; left out in all: 5",
	}, s.Remarks)
	text, err := s.ReadFile(t.Context(), "bom.md")
	require.NoError(t, err)
	require.Equal(t, "all of it", text)
	_, err = s.ReadFile(t.Context(), "tags.md")
	require.ErrorIs(t, err, agent.CodeInvalidInput)
	require.ErrorContains(t, err, "line 2, column 1")
}

// Of two skills with one name the first counts, and both are named; a sound one beside a broken
// one is read.
func TestDirectoriesOfSkills(t *testing.T) {
	one := write(t, t.TempDir(), map[string]string{"a/SKILL.md": front("a", ""), "b/SKILL.md": "broken"})
	two := write(t, t.TempDir(), map[string]string{"a/SKILL.md": front("a", "license: other\n"), "c/SKILL.md": front("c", "")})
	require.NoError(t, os.Symlink(filepath.Join(two, "c"), filepath.Join(one, "d")))
	all, err := ReadDirs(one, two, one, filepath.Join(two, "c"))
	require.ErrorContains(t, err, "have the same name")
	require.ErrorContains(t, err, "must begin with a line ---")
	require.ErrorContains(t, err, "is a link")
	require.Len(t, all, 2)
	require.Equal(t, []string{"a", "c"}, []string{all[0].Name, all[1].Name})
	require.Empty(t, all[0].License)
	_, err = ReadDirs(filepath.Join(one, "nowhere"))
	require.ErrorIs(t, err, agent.CodeInvalidInput)
}

// Skills are matched by the words of their descriptions, by patterns of paths, and by their
// names, in the same order each time (HA-127).
func TestMatch(t *testing.T) {
	skills := []agent.Skill{
		{Name: "ship", Description: "Deploy a release to production", WhenToUse: "The user says ship or rollout", Paths: []string{"infra/**", "Dockerfile"}},
		{Name: "pdf", Description: "Extract text from PDF documents and fill forms"},
		{Name: "mine", Description: "Extract text from PDF documents", UserOnly: true},
		{Name: "news", Description: "Write release notes from what was merged"},
	}
	for task, want := range map[string]string{
		"Deploy the new release, please":              "ship",
		"the rollout shipped to productions":          "ship",
		"Extract the forms of these documents":        "pdf",
		"Use ship.":                                   "ship",
		"release notes please":                        "news",
		"look at infra/terraform/cluster.tf":          "ship",
		"change Dockerfile":                           "ship",
		"read report.pdf":                             "",
		"the text":                                    "",
		"is it the one or not":                        "",
		"shipping leadership":                         "",
		"extract pdf text, and deploy with mine":      "pdf",
		"use pdf to fill in infra/form.pdf and so on": "pdf ship",
	} {
		var names []string
		for _, c := range Match(Task{Text: task}, skills) {
			names = append(names, c.Name)
			require.NotEmpty(t, c.Reason)
		}
		require.Equal(t, want, strings.Join(names, " "), task)
	}
	found := Match(Task{Text: "look at it", Files: []string{"./infra/a/b.tf"}}, skills)
	require.Equal(t, []agent.SkillCandidate{{Name: "ship", Score: pathBoost, Reason: "path: infra/**"}}, found)
	require.False(t, globs(strings.Repeat("**/", 60)+"x", strings.Repeat("a/", 60)+"y"), "a hostile pattern ends")
}

// FuzzRead holds the reader of SKILL.md to what it promises: no panic, and no text that hides.
func FuzzRead(f *testing.F) {
	f.Add(front("a", ""))
	f.Add("---\nname: a\ndescription: |\n  x\n---\nx")
	f.Fuzz(func(t *testing.T, text string) {
		s := &Skill{}
		if s.read([]byte(text), "a") != nil {
			return
		}
		require.Equal(t, "a", s.Name)
		require.False(t, strings.ContainsFunc(s.Description, hides))
		require.LessOrEqual(t, len(s.Instructions), MaxInstructions)
	})
}
