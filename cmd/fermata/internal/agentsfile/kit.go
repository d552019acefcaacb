package agentsfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/secret"
	"github.com/fermata-agents/fermata/skill"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/mcp"
	"github.com/fermata-agents/fermata/tool/workspace"
)

// serverEntry is an MCP server: a program (command) or a URL (url). The keys env, dir, network,
// read, write, sandbox and confine go with command; headers, plain and oauth go with url.
type serverEntry struct {
	// Command is the program and its arguments.
	Command []string `json:"command"`
	// Env are variables for the program, beside a few such as PATH. A value "$NAME" is that of
	// a variable of the worker's environment.
	Env map[string]string `json:"env"`
	// Dir is the directory in which the program runs, relative to the agents file; empty means
	// the file's own directory. The program may read a directory that is named here.
	Dir string `json:"dir"`
	held

	// URL is the server's address.
	URL string `json:"url"`
	// Headers are sent with each request to the URL. "${NAME}" in a value is a variable of the
	// worker's environment.
	Headers map[string]string `json:"headers"`
	// Plain allows a URL with http:// to another machine. Everybody on the way can read what
	// is sent.
	Plain bool `json:"plain"`

	// Resources adds tools that read the server's resources and prompts.
	Resources bool `json:"resources"`
	// TrustHints believes the server which of its tools only read.
	TrustHints bool `json:"trust_hints"`
	// Optional lets runs begin without the server's tools and skills if it cannot be asked.
	Optional bool `json:"optional"`
	// StartTimeout is how long the server may take to start, to list its tools, to list its
	// skills, and to give a file of one, at most 5m each.
	StartTimeout agent.Duration `json:"start_timeout" default:"10s"`
	// CallTimeout is how long one call may take, at most 24h.
	CallTimeout agent.Duration `json:"call_timeout" default:"10m"`
	// Per says who shares the server's state: all calls of a worker, those of a session, or
	// those of a run; empty means session if the server may keep state.
	Per mcp.Per `json:"per"`
	// OAuth says how the worker signs in to the URL; nil means that it does not.
	OAuth *oauthEntry `json:"oauth"`
	// Elicit says how the server may ask a person in the middle of a call; empty means rounds
	// for servers that know only the newest protocol. Under replay, a call is made again from
	// its beginning.
	Elicit mcp.Elicit `json:"elicit"`

	// Unpinned takes the server's tools and skills as they are each time, without the lock
	// file.
	Unpinned bool `json:"unpinned"`

	line int
	file *File
}

func (f *File) readServers(c *checker, part entry) {
	for _, e := range c.mapping(part, "names of servers, each with its command below") {
		where := "mcp." + e.name
		s, ok := decode[serverEntry](c, e, where)
		switch {
		case !ok:
			continue
		case agent.CheckTool(e.name) != nil || strings.Contains(e.name+"_", tool.Separator):
			c.add(agent.CodeInvalidInput, e.key, "%s: name it with letters, digits, '-' or single '_', beginning with a letter: its tools are called NAME__TOOL", where)
		default:
			if field, fault := s.fault(e.name); fault != "" {
				c.add(agent.CodeInvalidInput, e.at(field), "%s%s", where, fault)
				continue
			}
			if s.Read, s.Write = f.paths(s.Read), f.paths(s.Write); s.Dir != "" {
				s.Read = append(s.Read, within(f.Dir, s.Dir))
			}
			// Absolute now: the worker may change its directory later.
			s.Dir, s.line, s.file = within(f.Dir, s.Dir), e.key.Line, f
			if o := s.OAuth; o != nil {
				o.Key, o.Assertion = f.proof(o.Key), f.proof(o.Assertion)
			}
			f.servers[e.name] = s
		}
	}
}

// proof returns the path of a file with a key or an assertion; empty if none is named.
func (f *File) proof(path string) string {
	if path == "" {
		return ""
	}
	return within(f.Dir, path)
}

// maxStart keeps the start of a server within the time that a run has to list tools.
const maxStart = agent.Duration(5 * time.Minute)

// maxCall bounds how long one call may take.
const maxCall = agent.Duration(24 * time.Hour)

// fault returns what is wrong with an entry, and where.
func (e serverEntry) fault(name string) (field, text string) {
	if field, text := e.held.fault(); text != "" {
		return field, text
	}
	switch {
	case e.URL == "" && len(e.Command) == 0:
		return "command", ".command is missing: write the program and its arguments, as a list, or a url"
	case e.URL == "" && len(e.Headers) > 0:
		return "headers", ".headers belongs to a server with a url"
	case e.URL == "" && e.OAuth != nil:
		return "oauth", ".oauth belongs to a server with a url"
	case e.plainSecret() != "":
		return "oauth", "." + e.plainSecret() + " needs a variable of the environment, as ${NAME}: the file must not contain secrets"
	case e.workersOwn() != "":
		return "", e.workersOwn()
	case e.URL == "" && e.Plain:
		return "plain", ".plain belongs to a server with a url"
	case !slices.Contains([]mcp.Elicit{"", mcp.ElicitRounds, mcp.ElicitReplay}, e.Elicit):
		return "elicit", ".elicit is " + quote(string(e.Elicit)) + ": write rounds, or replay where calls may be made again"
	case !slices.Contains([]mcp.Per{"", mcp.PerWorker, mcp.PerSession, mcp.PerRun}, e.Per):
		return "per", ".per is " + quote(string(e.Per)) + ": write worker, session or run"
	case e.StartTimeout < 0 || e.StartTimeout > maxStart:
		return "start_timeout", fmt.Sprintf(".start_timeout is %s: write 1ms to %s", e.StartTimeout, maxStart)
	case e.CallTimeout < 0 || e.CallTimeout > maxCall:
		return "call_timeout", fmt.Sprintf(".call_timeout is %s: write 1ms to %s", e.CallTimeout, maxCall)
	case e.URL == "":
		return "", ""
	case len(e.Command) > 0:
		return "url", " has a command and a url: use one of them"
	case len(e.Env) > 0:
		return "env", ".env belongs to a server with a command; headers name variables as ${NAME}"
	case e.Dir != "":
		return "dir", ".dir belongs to a server with a command"
	case e.Network || e.Sandbox != "" || e.Confine != "" || len(e.Read) > 0 || len(e.Write) > 0:
		return "", ": network, read, write, sandbox and confine belong to a server with a command"
	}
	// The server checks its own URL and options; every variable counts as set here.
	env := map[string]string{}
	for _, value := range e.values() {
		for _, variable := range mcp.Variables(value) {
			env[variable] = "set" // whether it is set is checked when the server is opened
		}
	}
	if err := mcp.NewHTTP(name, e.URL, e.options(env, nil, nil)).Err(); err != nil {
		return "url", ": " + err.Error()
	}
	return "", ""
}

// values returns the values that may name variables, by their field.
func (e serverEntry) values() map[string]string {
	values := map[string]string{}
	for header, value := range e.Headers {
		values["headers."+header] = value
	}
	if e.OAuth != nil {
		maps.Copy(values, e.OAuth.secrets())
	}
	return values
}

func (e serverEntry) options(env map[string]string, log *slog.Logger, vault mcp.Vault) *mcp.Options {
	o := &mcp.Options{
		OAuth: e.OAuth.options(vault),
		Env:   env, Dir: e.Dir, Headers: e.Headers, Plain: e.Plain, Resources: e.Resources, TrustHints: e.TrustHints, Optional: e.Optional, Per: e.Per, Elicit: e.Elicit,
		StartTimeout: time.Duration(e.StartTimeout), CallTimeout: time.Duration(e.CallTimeout), Logger: log,
		Network: e.Network, Sandbox: e.Sandbox, Confine: e.Confine, Read: e.Read, Write: e.Write,
	}
	// Only a program on this machine can touch the worker's files.
	if e.file != nil && len(e.Command) > 0 {
		o.AsRoot, o.Protect, o.Private = e.file.asRoot, e.file.protected(), e.file.private()
	}
	return o
}

// open makes the server; it is started or reached at the first request. What is known to
// be missing is an error now.
func (e serverEntry) open(name string, log *slog.Logger, vault mcp.Vault) (*mcp.Server, error) {
	if e.URL != "" {
		return e.openURL(name, log, vault)
	}
	// Checked now, so a missing program is found before the first run needs it.
	if err := e.found(); err != nil && !e.Optional {
		return nil, agent.Errorf(agent.CodeInvalidInput, "the program %s can't be run: %w", quote(e.Command[0]), err)
	}
	if info, err := os.Stat(e.Dir); err != nil || !info.IsDir() {
		return nil, agent.Errorf(agent.CodeInvalidInput, "its dir %s is not a directory", quote(e.Dir))
	}
	env := map[string]string{}
	for key, value := range e.Env {
		if variable, ok := strings.CutPrefix(value, "$"); ok {
			text, err := secret.Get(variable)
			if err != nil {
				return nil, agent.Errorf(agent.CodeInvalidInput, "env.%s: %w", key, err)
			}
			if value = text; value == "" {
				return nil, agent.Errorf(agent.CodeInvalidInput, "env.%s names %s, which is not set", key, variable)
			}
		}
		env[key] = value
	}
	return mcp.New(name, e.Command, e.options(env, log, nil)), nil
}

// found returns why the server's program can't be run; nil if it exists or is not needed.
func (e serverEntry) found() error {
	if len(e.Command) == 0 {
		return nil
	}
	program := e.Command[0]
	// With a slash the path is relative to the program's directory, not to the worker's.
	if strings.ContainsRune(program, filepath.Separator) {
		program = within(e.Dir, program)
	}
	_, err := exec.LookPath(program)
	return err
}

func (e serverEntry) openURL(name string, log *slog.Logger, vault mcp.Vault) (*mcp.Server, error) {
	env := map[string]string{}
	values := e.values()
	// Sorted, so the first error is the same each time.
	for _, where := range slices.Sorted(maps.Keys(values)) {
		for _, variable := range mcp.Variables(values[where]) {
			text, err := secret.Get(variable)
			if err != nil {
				return nil, agent.Errorf(agent.CodeInvalidInput, "%s: %w", where, err)
			}
			if env[variable] = text; text == "" {
				return nil, agent.Errorf(agent.CodeInvalidInput, "%s names %s, which is not set in the environment", where, variable)
			}
		}
	}
	s := mcp.NewHTTP(name, e.URL, e.options(env, log, vault))
	return s, s.Err()
}

// usesTools returns the workspace tools, and the MCP servers whose tools some agent names.
func (f *File) usesTools() (tools, servers []string) {
	set := map[string]bool{}
	for _, def := range f.Definitions() {
		for _, name := range def.Tools {
			set[name] = true
		}
		for _, k := range def.Checks() {
			name := k.ToolName()
			if server, _, ok := strings.Cut(name, tool.Separator); ok && k.Agent == "" {
				name = sourcePrefix + server
			}
			set[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if server, ok := strings.CutPrefix(name, sourcePrefix); ok {
			servers = append(servers, server)
		} else if slices.Contains(placeTools, name) {
			tools = append(tools, name)
		}
	}
	return tools, servers
}

// Kit is the tools and servers of a file's agents.
type Kit struct {
	Tools   []tool.Tool
	Sources []tool.Source

	file    *File
	log     *slog.Logger   // nil discards
	served  []*skill.Skill // see ReadSkills
	without []error
	place   *workspace.Workspace // nil if no agent needs it
	servers []*mcp.Server        // sorted by name
	open    []io.Closer
}

// Open opens the workspace and the MCP servers that some agent uses. If one fails nothing
// stays open. A server starts at its first request. vault keeps the tokens of people who
// sign in; nil keeps them in memory.
func (f *File) Open(log *slog.Logger, vault mcp.Vault) (*Kit, error) {
	k := &Kit{file: f, log: log}
	tools, servers := f.uses()
	if dir := f.Workspace(); dir != "" {
		w, err := workspace.Open(dir, f.WorkspaceOptions())
		if err != nil {
			return nil, err
		}
		k.open = append(k.open, w)
		k.place = w
		if len(tools) > 0 { // else it is only watched, or copied
			k.Tools = w.Tools()
		}
	}
	if err := k.openWeb(); err != nil {
		return nil, errors.Join(err, k.Close())
	}
	for _, name := range servers {
		s, err := f.openServer(name, log, vault)
		if err != nil {
			// What was opened before must not stay open.
			return nil, errors.Join(err, k.Close())
		}
		k.open = append(k.open, s)
		k.Sources = append(k.Sources, s)
		k.servers = append(k.servers, s)
	}
	return k, nil
}

func (f *File) openServer(name string, log *slog.Logger, vault mcp.Vault) (*mcp.Server, error) {
	s, err := f.servers[name].open(name, log, vault)
	if err != nil {
		return nil, agent.Errorf(agent.CodeOf(err), "%s:%d: mcp.%s: %w", f.Path, f.servers[name].line, name, err)
	}
	return s, nil
}

// ServerState is the result of asking an MCP server for its tools.
type ServerState struct {
	Name     string
	Tools    int
	SignIn   bool // it shows its tools only after a sign-in
	Optional bool
	// Listed are the tools, and Instructions what the server says about them.
	Listed       []agent.ToolSpec
	Instructions string
	Gone         bool   // its program can't be started
	Confinement  string // what confines its program; empty for a URL
	Err          error  // why there are no tools
}

// askTime caps how long a server may take to answer. A program may take longer, since it
// may have to be downloaded first.
const askTime = agent.Duration(5 * time.Second)

// AskServers asks MCP servers that some agent uses for their tools, all at once, and
// stops them: those that are named, or all. The states are sorted by name.
func (f *File) AskServers(ctx context.Context, names ...string) []ServerState {
	_, servers := f.usesTools()
	servers = slices.DeleteFunc(servers, func(s string) bool { return len(names) > 0 && !slices.Contains(names, s) })
	states := make([]ServerState, len(servers))
	var all sync.WaitGroup
	for i, name := range servers {
		all.Go(func() { states[i] = f.askServer(ctx, name) })
	}
	all.Wait()
	return states
}

func (f *File) askServer(ctx context.Context, name string) ServerState {
	state := ServerState{Name: name, Optional: f.servers[name].Optional}
	entry := f.servers[name]
	if err := entry.found(); err != nil {
		state.Gone, state.Err = true, agent.Errorf(agent.CodeToolsMissing, "the MCP server %s can't be started (%s): %w", name, entry.Command[0], err)
		return state
	}
	if entry.URL != "" && (entry.StartTimeout == 0 || entry.StartTimeout > askTime) {
		entry.StartTimeout = askTime
	}
	// Each look would register a client with the server otherwise. Nobody signs in with this one.
	if o := entry.OAuth; o != nil && (o.Grant == "" || o.Grant == mcp.GrantCode) && o.Secret == "" && o.Key == "" {
		entry.OAuth = &oauthEntry{Client: "doctor"}
	}
	s, err := entry.open(name, nil, nil)
	if err != nil {
		state.Err = agent.Errorf(agent.CodeOf(err), "%s:%d: mcp.%s: %w", f.Path, entry.line, name, err)
		return state
	}
	state.Confinement = s.Confinement()
	tools, err := s.List(ctx)
	state.Tools, state.Err, state.Listed = len(tools), err, tools
	if err == nil {
		state.Instructions = activities.InstructionsOf(s)
	}
	// Before a sign-in, the server's only tool is the one that starts it.
	state.SignIn = len(tools) == 1 && entry.OAuth != nil && tools[0].Name == mcp.SignIn(name)
	_ = s.Close() // its answer is here, so its end does not matter
	return state
}
