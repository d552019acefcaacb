package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/skill"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// skillsExtension is the MCP extension with which servers serve skills.
const skillsExtension = "io.modelcontextprotocol/skills"

const (
	methodListSkills = "skills/list"
	methodGetSkill   = "skills/get"
	maxSkillsListed  = 1000 // skills that a server may list
	maxNamesShown    = 20   // names in an error
)

type listSkillsParams struct {
	sdk.ParamsBase
	Cursor string `json:"cursor,omitempty"`
}

type listSkillsResult struct {
	sdk.ResultBase
	Skills     []skillEntry `json:"skills"`
	NextCursor string       `json:"nextCursor"`
}

type getSkillParams struct {
	sdk.ParamsBase
	URI string `json:"uri"`
}

type getSkillResult struct {
	sdk.ResultBase
	Skill skillEntry `json:"skill"`
}

// skillEntry is a skill as the server lists it.
type skillEntry struct {
	URI         string          `json:"uri"`
	Frontmatter json.RawMessage `json:"frontmatter"`
	Resources   json.RawMessage `json:"resources"`
}

func (e skillEntry) name() string {
	var front struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(e.Frontmatter, &front) // what is no object has no name, and is refused later
	return front.Name
}

// enableSkills registers the extension's methods with a client.
func enableSkills(c *sdk.Client) error {
	return errors.Join(
		sdk.AddSendingCustomMethod[*listSkillsParams, *listSkillsResult](c, methodListSkills),
		sdk.AddSendingCustomMethod[*getSkillParams, *getSkillResult](c, methodGetSkill))
}

// Skills asks the server for its skills (MCP extension io.modelcontextprotocol/skills): for all
// that it lists, or for those that are named by their names or URIs. It reads no file of a skill:
// a skill's files are read when a run needs them, and compared with the digests that the server
// gives now. Skills returns all that are sound, and all faults joined. A fault has the path
// "skills", and one of these codes: [agent.CodeNotFound] if the server has no such skill or serves
// none, [agent.CodeInvalidInput] for a skill that is not sound and for two with one name,
// [agent.CodeNotSetUp] if a person would have to sign in, and [agent.CodeToolFailed] if the server
// can't be asked.
func (s *Server) Skills(ctx context.Context, names ...string) ([]*skill.Skill, error) {
	if s.people() && s.opts.Per != PerWorker {
		return nil, s.nobodySignsIn()
	}
	var entries []skillEntry
	err := s.with(ctx, owner{}, func(l *link) (err error) {
		entries, err = s.skillEntries(ctx, l, names)
		return err
	})
	var asks *signIn
	var coded *agent.Error
	switch {
	case errors.As(err, &asks):
		return nil, s.nobodySignsIn()
	case errors.As(err, &coded) && coded.Path != "":
		return nil, err
	case err != nil:
		return nil, agent.Errorf(agent.CodeToolFailed, "the skills of the MCP server %s: %w", s.name, err).WithPath("skills")
	}
	return s.skillsOf(entries, names)
}

func (s *Server) nobodySignsIn() error {
	return agent.Errorf(agent.CodeNotSetUp, "the MCP server %s needs a person to sign in, and its skills are listed when the worker starts, when nobody is there: give the worker an access of its own (grant %s or %s)", s.name, GrantClient, GrantAssertion).WithPath("skills")
}

// skillEntries returns what the server lists, and what it says of each URI among the names.
func (s *Server) skillEntries(ctx context.Context, l *link, names []string) ([]skillEntry, error) {
	caps := l.session.InitializeResult().Capabilities
	if caps == nil || caps.Extensions[skillsExtension] == nil {
		return nil, agent.Errorf(agent.CodeNotFound, "the MCP server %s serves no skills: it does not declare the extension %s", s.name, skillsExtension).WithPath("skills")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.opts.startTimeout(), errListTime)
	defer cancel()
	byName := func(n string) bool { return !strings.Contains(n, "://") }
	entries, t, err := request(ctx, s, func(ctx context.Context) (all []skillEntry, err error) {
		if len(names) == 0 || slices.ContainsFunc(names, byName) {
			if all, err = skillPages(ctx, l.session); err != nil {
				return nil, err
			}
		}
		for _, uri := range names {
			if byName(uri) || slices.ContainsFunc(all, func(e skillEntry) bool { return e.URI == uri }) {
				continue
			}
			one, err := sdk.CallCustomMethod[*getSkillParams, *getSkillResult](ctx, l.session, methodGetSkill, &getSkillParams{URI: uri})
			if e := answered(err); e != nil && e.Code == jsonrpc.CodeInvalidParams {
				continue // it serves no such skill
			}
			if err != nil {
				return nil, err
			}
			if one.Skill.URI != uri {
				return nil, fmt.Errorf("it was asked for the skill %s, and answers with another one", cut(clean(uri), maxShown))
			}
			all = append(all, one.Skill)
		}
		return all, nil
	})
	switch {
	case err == nil:
		return entries, nil
	case errors.Is(context.Cause(ctx), errListTime):
		return nil, fmt.Errorf("it did not list them within %s; raise start_timeout if it needs longer", s.opts.startTimeout())
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return nil, s.trouble(l, t, err, "while it listed its skills")
}

// skillPages collects what the server lists, within bounds: a server could list forever.
func skillPages(ctx context.Context, session *sdk.ClientSession) (all []skillEntry, err error) {
	params, size := &listSkillsParams{}, 0
	for range maxPages {
		page, err := sdk.CallCustomMethod[*listSkillsParams, *listSkillsResult](ctx, session, methodListSkills, params)
		if err != nil {
			return nil, err
		}
		for _, e := range page.Skills {
			if size += len(e.URI) + len(e.Frontmatter) + len(e.Resources); size > maxMessage {
				return nil, fmt.Errorf("its list of skills has more than %d bytes", maxMessage)
			}
		}
		if all = append(all, page.Skills...); len(all) > maxSkillsListed {
			return nil, fmt.Errorf("it lists more than %d skills; name one by its URI", maxSkillsListed)
		}
		if page.NextCursor == "" {
			return all, nil
		}
		params = &listSkillsParams{Cursor: page.NextCursor}
	}
	return nil, fmt.Errorf("it lists more than %d pages of skills", maxPages)
}

// skillsOf returns the skills of entries that are named; all without names.
func (s *Server) skillsOf(entries []skillEntry, names []string) (all []*skill.Skill, err error) {
	var faults []error
	add := func(code agent.Code, format string, args ...any) {
		faults = append(faults, agent.Errorf(code, "the MCP server %s %s", s.name, fmt.Sprintf(format, args...)).WithPath("skills"))
	}
	for _, n := range names {
		if !slices.ContainsFunc(entries, func(e skillEntry) bool { return e.URI == n || e.name() == n }) {
			add(agent.CodeNotFound, "lists no skill %s; it lists %s", cut(clean(n), maxShown), s.listed(entries))
		}
	}
	for _, e := range entries {
		if len(names) > 0 && !slices.Contains(names, e.URI) && !slices.Contains(names, e.name()) {
			continue
		}
		one, err := s.skillOf(e)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		switch i := slices.IndexFunc(all, func(o *skill.Skill) bool { return o.Name == one.Name }); {
		case i >= 0 && all[i].URI == one.URI:
			add(agent.CodeInvalidInput, "lists the skill %s twice", one.URI)
		case i >= 0:
			add(agent.CodeInvalidInput, "lists two skills with the name %s, %s and %s: name one by its URI, as %s%s/URI", one.Name, all[i].URI, one.URI, agent.ServerPrefix, s.name)
		default:
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b *skill.Skill) int { return strings.Compare(a.Name, b.Name) })
	return all, errors.Join(faults...)
}

// listed returns the names of entries for an error.
func (s *Server) listed(entries []skillEntry) string {
	var names []string
	for _, e := range entries[:min(len(entries), maxNamesShown)] {
		names = append(names, cut(s.said(e.name()), maxShown))
	}
	if more := len(entries) - maxNamesShown; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func (s *Server) skillOf(e skillEntry) (*skill.Skill, error) {
	entry := skill.Entry{Server: s.name, URI: e.URI, Frontmatter: e.Frontmatter, Read: s.readSkill}
	var kind string
	fault := ""
	switch {
	case json.Unmarshal(e.Resources, &kind) == nil && kind == "dynamic":
		fault = "its content is made anew each time (dynamic), and a run needs the same words each time"
	case json.Unmarshal(e.Resources, &entry.Files) != nil || entry.Files == nil:
		fault = "it has no list of its files"
	case s.repeatsIn(e, entry.Files):
		fault = "its entry has a secret of this worker"
	}
	if fault != "" {
		return nil, agent.Errorf(agent.CodeInvalidInput, "skill %+q of the MCP server %s: %s", cut(s.said(e.URI), maxShown), s.name, fault).WithPath("skills")
	}
	return skill.FromServer(entry)
}

// repeats reports whether a remote server sends our credentials back. Digests do not allow that
// they are removed.
func (s *Server) repeats(text string) bool { return s.url != nil && s.secrets(text) != text }

// repeatsIn reports whether an entry has a secret: as it stands, or behind the escapes of JSON and URIs.
func (s *Server) repeatsIn(e skillEntry, files []skill.EntryFile) bool {
	var front any
	_ = json.Unmarshal(e.Frontmatter, &front) // what is no JSON is refused later
	texts := []string{e.URI, string(e.Frontmatter), fmt.Sprint(front)}
	for _, f := range files {
		texts = append(texts, f.URI, f.Digest)
	}
	return slices.ContainsFunc(texts, func(text string) bool {
		plain, err := url.PathUnescape(text)
		return s.repeats(text) || err == nil && s.repeats(plain)
	})
}

// readSkill reads a file of a skill.
func (s *Server) readSkill(ctx context.Context, uri string) (data []byte, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.opts.startTimeout(), errReadTime)
	defer cancel()
	err = s.with(ctx, owner{}, func(l *link) error {
		r, t, err := request(ctx, s, func(ctx context.Context) (*sdk.ReadResourceResult, error) {
			return l.session.ReadResource(ctx, &sdk.ReadResourceParams{URI: uri})
		})
		if err != nil && ctx.Err() == nil {
			return s.trouble(l, t, err, "while it was asked for a skill")
		}
		if err == nil {
			data, err = fileOf(r)
		}
		return err
	})
	switch {
	case errors.Is(context.Cause(ctx), errReadTime):
		err = fmt.Errorf("it did not answer within %s", s.opts.startTimeout())
	case err == nil && s.repeats(string(data)):
		err = errors.New("it has a secret of this worker")
	}
	if err != nil {
		return nil, agent.Errorf(agent.CodeToolFailed, "the MCP server %s does not give %s: %w", s.name, cut(clean(uri), maxShown), err)
	}
	return data, nil
}

var errReadTime = errors.New("the time to read is up")

// fileOf returns the bytes of a resource that is one file.
func fileOf(r *sdk.ReadResourceResult) ([]byte, error) {
	if err := pendingInput(r, r.InputRequests); err != nil {
		return nil, err
	}
	if len(r.Contents) != 1 || r.Contents[0] == nil {
		return nil, fmt.Errorf("it answers with %d contents, and not with one file", len(r.Contents))
	}
	if c := r.Contents[0]; c.Blob != nil {
		return c.Blob, nil
	}
	return []byte(r.Contents[0].Text), nil
}
