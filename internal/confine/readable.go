package confine

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// systemDirs are what programs need to run. Secrets in them are protected by the modes of
// their files. /run is not in the list, since containers mount secrets there. Nor is
// /var, where services keep their data.
var systemDirs = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/proc", "/sys",
	"/nix", "/gnu", "/snap", "/run/current-system", "/home/linuxbrew",
}

// toolchains are directories of a home with programs and no secrets, which a confined
// program may read. Some are found through a variable, since the program has another
// HOME.
var toolchains = []struct{ dir, variable string }{
	{".rustup", "RUSTUP_HOME"}, {".pyenv", "PYENV_ROOT"}, {".nvm", "NVM_DIR"}, {".volta", "VOLTA_HOME"}, {".asdf", "ASDF_DATA_DIR"},
	{".cargo/bin", ""}, {".local/bin", ""}, {"go/bin", ""}, {"sdk", ""}, {".sdkman", ""}, {".bun/bin", ""}, {".deno/bin", ""},
	{".local/share/mise", ""}, {".local/share/uv", ""}, {".local/share/fnm", ""}, {".local/lib", ""}, {".linuxbrew", ""},
}

// FindToolchains sets the variables that lead to toolchains in the user's home, in the
// environment of a program with another HOME.
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

// Readable returns the paths that every confined program may read: the system's
// directories, the PATH, and toolchains in the home of this process's user.
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
	// These are often symlinks out of the system's directories.
	for _, link := range []string{"/etc/resolv.conf", "/etc/ssl/certs"} {
		if target, err := filepath.EvalSymlinks(link); err == nil {
			paths = append(paths, target)
		}
	}
	return paths
}

// opensHome reports whether a directory is the user's home or contains it: reading it
// would mean reading all of the home.
func opensHome(dir string) bool {
	home, err := os.UserHomeDir()
	if err != nil {
		return dir == string(filepath.Separator)
	}
	return within(dir, home)
}

// within reports whether path is dir or lies in it, by its text alone.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// ProgramDirs returns what a command needs to read: the folders of its program and of the
// files that its arguments name, and what is beside a bin. If a folder would open the
// user's home, only the file itself is in the list.
func ProgramDirs(command []string, dir string) (list []string) {
	for _, path := range ProgramFiles(command, dir) {
		folder := filepath.Dir(path)
		if filepath.Base(folder) == "bin" && !opensHome(filepath.Dir(folder)) {
			folder = filepath.Dir(folder)
		}
		// In a sticky folder such as /tmp, the files beside it belong to others.
		if info, err := os.Stat(folder); opensHome(folder) || err != nil || info.Mode()&os.ModeSticky != 0 {
			folder = path
		}
		list = append(list, folder)
	}
	return list
}

// ProgramFiles returns the files of a command that runs in a directory: the program that
// the PATH leads to, and each file that an argument names. Each is listed as it is named,
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
