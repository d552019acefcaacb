package confine

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// systemDirs are what programs need to run. What there is secret in them is
// protected by the modes of its files. /run is not among them: secrets of
// containers are mounted there; nor is /var, where services keep their data.
var systemDirs = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/proc", "/sys",
	"/nix", "/gnu", "/snap", "/run/current-system", "/home/linuxbrew",
}

// toolchains are directories of a home that hold programs and no secrets: a
// held program may read them. Those with a variable are found by it, since
// the program's HOME is another.
var toolchains = []struct{ dir, variable string }{
	{".rustup", "RUSTUP_HOME"}, {".pyenv", "PYENV_ROOT"}, {".nvm", "NVM_DIR"}, {".volta", "VOLTA_HOME"}, {".asdf", "ASDF_DATA_DIR"},
	{".cargo/bin", ""}, {".local/bin", ""}, {"go/bin", ""}, {"sdk", ""}, {".sdkman", ""}, {".bun/bin", ""}, {".deno/bin", ""},
	{".local/share/mise", ""}, {".local/share/uv", ""}, {".local/share/fnm", ""}, {".local/lib", ""}, {".linuxbrew", ""},
}

// FindToolchains sets the variables by which toolchains in the user's home are found, in the
// environment of a program whose HOME is another.
func FindToolchains(env map[string]string) {
	home, err := os.UserHomeDir()
	if err != nil {
		return
	}
	for _, t := range toolchains {
		path := filepath.Join(home, t.dir)
		if info, err := os.Stat(path); t.variable != "" && env[t.variable] == "" && err == nil && info.IsDir() {
			env[t.variable] = path
		}
	}
}

// Readable are the paths that every held program may read: the system's directories, what
// is on the PATH, and toolchains in the home of this process' user.
func Readable() []string {
	paths := slices.Clone(systemDirs)
	home, err := os.UserHomeDir()
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if filepath.IsAbs(dir) && !opensHome(dir) {
			paths = append(paths, dir)
		}
	}
	for _, t := range toolchains {
		if err == nil {
			paths = append(paths, filepath.Join(home, t.dir))
		}
		if t.variable != "" && filepath.IsAbs(os.Getenv(t.variable)) {
			paths = append(paths, os.Getenv(t.variable))
		}
	}
	// These are often symlinks to where the system's directories end.
	for _, link := range []string{"/etc/resolv.conf", "/etc/ssl/certs"} {
		if target, err := filepath.EvalSymlinks(link); err == nil {
			paths = append(paths, target)
		}
	}
	return paths
}

// opensHome reports whether a directory is the user's home or above it: who may read it
// reads all of the home.
func opensHome(dir string) bool {
	home, err := os.UserHomeDir()
	if err != nil {
		return dir == string(filepath.Separator)
	}
	return within(dir, home)
}

// within reports whether path is dir or lies in it, by its letters.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// ProgramDirs are what a program needs to read that is called so, from a directory: where
// it lies, where the files lie that its arguments name, and what is beside a bin. What
// would open the home of the user is left out, and only the file itself is in its place.
func ProgramDirs(command []string, dir string) (list []string) {
	for _, path := range ProgramFiles(command, dir) {
		folder := filepath.Dir(path)
		if filepath.Base(folder) == "bin" && !opensHome(filepath.Dir(folder)) {
			folder = filepath.Dir(folder)
		}
		if info, err := os.Stat(folder); opensHome(folder) || err != nil || info.Mode()&os.ModeSticky != 0 {
			folder = path // what others have beside it, as in /tmp, is not of the program
		}
		list = append(list, folder)
	}
	return list
}

// ProgramFiles are the files that a command consists of, run in a directory: the program
// that the PATH leads to and each file that an argument names. Each is there as it is named
// and without symlinks.
func ProgramFiles(command []string, dir string) (list []string) {
	add := func(path string) {
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			return
		}
		list = append(list, path)
		if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
			list = append(list, real)
		}
	}
	for i, word := range command {
		if i > 0 {
			_, value, option := strings.Cut(word, "=") // --config=server.yaml
			if add(word); option {
				add(value)
			}
			continue
		}
		if strings.ContainsRune(word, filepath.Separator) {
			add(word)
		} else if path, err := exec.LookPath(word); err == nil {
			if path, err = filepath.Abs(path); err == nil {
				add(path)
			}
		}
	}
	return list
}
