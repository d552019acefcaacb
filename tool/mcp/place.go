package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/confine"
	"github.com/fermata-agents/fermata/tool"
)

// place has the directories of one process. If it is empty, the process uses those of the
// user.
type place struct{ home, temp string }

// place creates the directories of a process.
func (s *Server) place() (place, error) {
	// Without confinement it has the user's own directories.
	if s.opts.Confine == tool.ConfineNever {
		return place{}, nil
	}
	temp, err := os.MkdirTemp("", "fermata-mcp-")
	if err != nil {
		return place{}, fmt.Errorf("no temporary directory: %w", err)
	}
	at := place{home: s.opts.Home, temp: temp}
	// The same home for the same command, so that caches of npx and uvx last.
	if cache, err := os.UserCacheDir(); at.home == "" && err == nil {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%q\x00%s", s.name, s.command, s.opts.Dir))
		at.home = filepath.Join(cache, "fermata", "mcp", hex.EncodeToString(sum[:8]))
	}
	if at.home != "" {
		err = os.MkdirAll(at.home, 0o700)
	}
	if at.home == "" || err != nil && s.opts.Home == "" {
		// A user without a home: nothing lasts.
		at.home = filepath.Join(temp, "home")
		err = os.Mkdir(at.home, 0o700)
	}
	if err != nil {
		at.leave()
		return place{}, fmt.Errorf("no home for it: %w", err)
	}
	return at, nil
}

// leave removes what belongs to this process alone.
func (p place) leave() {
	if p.temp != "" {
		_ = os.RemoveAll(p.temp) // what can't be removed harms nobody
	}
}

// policy returns what a process may do.
func (s *Server) policy(at place) *confine.Policy {
	p := &confine.Policy{
		Kernel: confine.HostKernel(), Sandbox: s.opts.Sandbox, Confine: s.opts.Confine, AsRoot: s.opts.AsRoot, Network: s.opts.Network,
		Write: s.opts.Write, Read: slices.Clone(s.opts.Read), Protect: s.opts.Protect, Private: s.opts.Private,
	}
	if s.opts.Home != "" {
		p.Write = append(slices.Clone(p.Write), s.opts.Home)
	}
	if at.home != "" {
		p.Own = []string{at.home, at.temp}
	}
	private := confine.LookUp(s.opts.Private)
	for _, dir := range confine.ProgramDirs(s.command, s.opts.Dir) {
		// The command may lie beside private files, such as keys; these stay closed.
		if private.In(dir) == "" {
			p.Read = append(p.Read, dir)
		}
	}
	p.Read = append(p.Read, confine.ProgramFiles(s.command, s.opts.Dir)...)
	return p
}

// CheckStart returns why the server's program may not be started: an [agent.CodeDenied]
// error, or that of [Server.Err]. It returns nil if the program may start, and for a
// server with a URL. The program need not exist.
func (s *Server) CheckStart() error {
	if s.fault != nil || s.url != nil {
		return s.fault
	}
	if err := s.policy(place{}).Fault(); err != nil {
		return agent.Errorf(agent.CodeOf(err), "the MCP server %s is not started: %w", s.name, err)
	}
	return nil
}

// Confinement describes what confines the program; empty for a server with a URL.
func (s *Server) Confinement() string {
	p := s.policy(place{})
	switch {
	case s.url != nil:
		return ""
	case p.Fault() != nil:
		return "it is not started"
	case !p.Enforced():
		return "nothing confines it: it may do what the worker's user may"
	case p.Offline():
		return p.Holder() + " confines it to its own files, without network"
	}
	return p.Holder() + " confines it to its own files, with the network"
}

// hint says what to check if a program does not start that works elsewhere.
func (s *Server) hint() string {
	p := s.policy(place{})
	if !p.Enforced() {
		return ""
	}
	if p.Offline() {
		return "; it is confined and has no network, which npx and uvx need to download: see network, read and write"
	}
	return "; it is confined: see read and write"
}

// passed are the environment variables that every server gets. None of them holds a
// secret; secrets belong in Options.Env.
var passed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LANGUAGE", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR",
}

var passedWindows = []string{
	"APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE", "PROGRAMFILES",
	"SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE",
}

func (s *Server) environment(at place) []string {
	names := passed
	if runtime.GOOS == "windows" {
		names = passedWindows
	}
	env := map[string]string{}
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		if slices.Contains(names, name) || runtime.GOOS == "windows" && slices.Contains(names, strings.ToUpper(name)) || strings.HasPrefix(name, "LC_") {
			env[name] = value
		}
	}
	if at.home != "" {
		env["HOME"], env["TMPDIR"] = at.home, at.temp
		confine.FindToolchains(env)
	}
	maps.Copy(env, s.opts.Env)
	list := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}
