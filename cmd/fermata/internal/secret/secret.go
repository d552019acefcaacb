package secret

import (
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// FileSuffix added to a variable's name gives the variable that names a file with the
// value.
const FileSuffix = "_FILE"

// maxFile bounds a file with a secret, in bytes.
const maxFile = 64 << 10

// Get returns the value of a variable, or the content of the file that NAME_FILE names,
// without white space around it; empty if neither is set. Errors are
// [agent.CodeInvalidInput]: both are set, or the file can't be read, is not a regular
// file, is empty, or others may read or write it. They show the path, and nothing of the
// content.
func Get(name string) (string, error) {
	value, path := strings.TrimSpace(os.Getenv(name)), os.Getenv(name+FileSuffix)
	switch {
	case path == "":
		return value, nil
	case value != "":
		return "", agent.Errorf(agent.CodeInvalidInput, "%s and %s are both set: unset one of them", name, name+FileSuffix)
	}
	return File(name+FileSuffix, path)
}

// File returns the content of a file with a secret, without white space around it. what names the
// file in errors, which are those of [Get].
func File(what, path string) (string, error) {
	value, err := read(path)
	if err != nil {
		return "", agent.Errorf(agent.CodeInvalidInput, "%s: %w", what, err)
	}
	return value, nil
}

// IsSet reports whether a variable, or the one that names its file, has a value.
func IsSet(name string) bool { return os.Getenv(name) != "" || os.Getenv(name+FileSuffix) != "" }

func read(path string) (string, error) {
	// Before the open: opening a pipe would wait forever.
	if info, err := os.Stat(path); err != nil {
		return "", err
	} else if !info.Mode().IsRegular() {
		return "", agent.Errorf(agent.CodeInvalidInput, "%s is no regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	// Stat of the open file: the path may lead to another file by now.
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	// Groups may read: Kubernetes mounts secrets so. Windows has no such mode bits.
	if mode := info.Mode().Perm(); mode&0o007 != 0 && runtime.GOOS != "windows" {
		return "", agent.Errorf(agent.CodeInvalidInput, "others may read or write %s (mode %04o): chmod o-rwx it, or set defaultMode: 0440 where Kubernetes mounts it", path, mode)
	}
	// One byte more than allowed, to notice a longer file.
	raw, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch text := strings.TrimSpace(string(raw)); {
	case err != nil:
		return "", err
	case len(raw) > maxFile:
		return "", agent.Errorf(agent.CodeInvalidInput, "%s has more than %d bytes", path, maxFile)
	case text == "":
		return "", agent.Errorf(agent.CodeInvalidInput, "%s is empty", path)
	default:
		return text, nil
	}
}
