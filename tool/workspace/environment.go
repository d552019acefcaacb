package workspace

import (
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/internal/confine"
)

// passed are the environment variables that every command gets. None of them holds a
// secret; secrets (tokens, proxies with a password) belong in Options.Env.
var passed = []string{
	"PATH", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"GOROOT", "GOTOOLCHAIN", "JAVA_HOME", "RUSTUP_HOME", "PYENV_ROOT", "NVM_DIR", "VOLTA_HOME", "ASDF_DATA_DIR",
	"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL",
}

// environment returns the variables that a command gets.
func (w *Workspace) environment(home, temp, dir string) []string {
	env := map[string]string{"PATH": "/usr/local/bin:/usr/bin:/bin"}
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		if slices.Contains(passed, name) || strings.HasPrefix(name, "LC_") {
			env[name] = value
		}
	}
	confine.FindToolchains(env)
	// After what is inherited: none of it may replace these. Options.Env, which the user
	// chose, may.
	maps.Copy(env, map[string]string{"HOME": home, "SHELL": shellPath, "TERM": "dumb"})
	for _, name := range w.opts.Env {
		if value, ok := os.LookupEnv(name); ok {
			env[name] = value
		}
	}
	maps.Copy(env, w.env)
	maps.Copy(env, map[string]string{"TMPDIR": temp, "PWD": dir})
	list := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}
