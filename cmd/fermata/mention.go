package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/render"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
	"github.com/fermata-agents/fermata/tool/workspace"
)

// mention matches @ at the beginning of a word, with the word or a text in quotes.
var mention = regexp.MustCompile(`(^|\s)@("[^"]*"|'[^']*'|\S+)`)

// mentions returns a line as it is sent, and the paths of the files that it names with @. A word
// that is neither a file nor looks like a path stays text, and so does one with two @, which
// loses the first. The error names a path that is not there.
func mentions(text string) (said string, paths []string, err error) {
	var out strings.Builder
	end := 0
	for _, m := range mention.FindAllStringSubmatchIndex(text, -1) {
		word := text[m[4]:m[5]]
		if strings.HasPrefix(word, "@") {
			out.WriteString(text[end:m[3]])
			end = m[4]
			continue
		}
		path, why := mentioned(word)
		if why != "" {
			return "", nil, agent.Errorf(agent.CodeInvalidInput, "nothing was sent: @%s %s; write @@ for an @ that shows no file", word, why)
		}
		if path != "" && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	out.WriteString(text[end:])
	return out.String(), paths, nil
}

// mentioned returns the path of the file that a word names; empty if it names none. why says what is
// wrong with a path.
func mentioned(word string) (path, why string) {
	bare := strings.TrimRight(word, ".,;:!?)")
	tries, isPath := []string{word, bare}, strings.ContainsAny(bare, "./") && !strings.Contains(bare, "@")
	if quote := word[:1]; quote == `"` || quote == "'" {
		tries, isPath = []string{strings.Trim(word, quote)}, true
	}
	why = "is not a file"
	for _, try := range tries {
		if home, err := os.UserHomeDir(); err == nil && strings.HasPrefix(try, "~/") {
			try = filepath.Join(home, try[2:])
		}
		info, err := os.Stat(try)
		switch {
		case err != nil:
		case info.Mode().IsRegular() && isSecret(try):
			return "", "usually holds secrets, and a model would read it; fermata send --file shows it nevertheless"
		case info.Mode().IsRegular():
			return try, ""
		default: // reading a pipe or a device may never end
			why = "is no regular file"
		}
	}
	if !isPath {
		why = ""
	}
	return "", why
}

// isSecret reports whether a file usually holds secrets, by the name that was written or by that of
// what it leads to. A pasted line may name one that nobody meant.
func isSecret(path string) bool {
	target, err := filepath.EvalSymlinks(path)
	if err == nil {
		target, err = filepath.Abs(target)
	}
	return err != nil || workspace.Sensitive(path) || workspace.Sensitive(target)
}

// filesIn returns a message as it is sent, and the files that it shows. A script's lines may come
// from anybody, so only a person at the terminal shows files so.
func (t *chat) filesIn(text string) (said string, files []fermata.FileInput, err error) {
	said, paths, err := mentions(text)
	if t.script {
		if len(paths) > 0 {
			t.to.Note("standard input is no terminal, so @ stays text; to show files: fermata send --file")
		}
		return text, nil, nil
	}
	if err == nil {
		files, err = fileInputs(paths)
	}
	return said, files, err
}

// noteShown says which files went with a message: it may have named one that nobody meant.
func (v *conversation) noteShown(files []fermata.FileInput) {
	for _, f := range files {
		v.to.Note("shows %s, %s", untrusted.Name(f.Name), render.Count(len(f.Data), "byte"))
	}
}
