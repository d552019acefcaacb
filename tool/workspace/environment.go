package workspace

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// passed are the environment variables that every command gets. None of them
// holds a secret; what may (proxies with a password, tokens) is for Options.Env.
var passed = []string{
	"PATH", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"GOROOT", "GOTOOLCHAIN", "JAVA_HOME", "RUSTUP_HOME", "PYENV_ROOT", "NVM_DIR", "VOLTA_HOME", "ASDF_DATA_DIR",
	"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL",
}

// toolchains are directories of a home that hold programs and no secrets: a
// confined command may read them. Those with a variable are found by it, since
// the command's HOME is another.
var toolchains = []struct{ dir, variable string }{
	{".rustup", "RUSTUP_HOME"}, {".pyenv", "PYENV_ROOT"}, {".nvm", "NVM_DIR"}, {".volta", "VOLTA_HOME"}, {".asdf", "ASDF_DATA_DIR"},
	{".cargo/bin", ""}, {".local/bin", ""}, {"go/bin", ""}, {"sdk", ""}, {".sdkman", ""}, {".bun/bin", ""}, {".deno/bin", ""},
	{".local/share/mise", ""}, {".local/share/uv", ""}, {".local/share/fnm", ""}, {".local/lib", ""}, {".linuxbrew", ""},
}

// cookie marks the environment of a command, so that what it started is found again.
const cookie = "FERMATA_COMMAND"

// environment is what a command gets to know of this process.
func (w *Workspace) environment(home, temp, dir, mark string) []string {
	env := map[string]string{"PATH": "/usr/local/bin:/usr/bin:/bin"}
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		if slices.Contains(passed, name) || strings.HasPrefix(name, "LC_") {
			env[name] = value
		}
	}
	if real, err := os.UserHomeDir(); err == nil {
		for _, t := range toolchains {
			if path := filepath.Join(real, t.dir); t.variable != "" && env[t.variable] == "" && isDir(path) {
				env[t.variable] = path
			}
		}
	}
	maps.Copy(env, map[string]string{"HOME": home, "SHELL": shellPath, "TERM": "dumb"})
	for _, name := range w.opts.Env {
		if value, ok := os.LookupEnv(name); ok {
			env[name] = value
		}
	}
	maps.Copy(env, map[string]string{"TMPDIR": temp, "PWD": dir, cookie: mark})
	list := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

// readable are the paths that a confined command may read besides those of the
// system: what is on the PATH, toolchains, and what the options say.
func (w *Workspace) readable() []string {
	paths := slices.Clone(w.opts.Read)
	home, err := os.UserHomeDir()
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		// A PATH with the home itself or a directory above it would open all of it.
		if filepath.IsAbs(dir) && (err != nil || !within(dir, home)) {
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

// within reports whether path is dir or lies in it.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
