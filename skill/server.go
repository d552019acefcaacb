package skill

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"unicode"

	"go.yaml.in/yaml/v4"
	"golang.org/x/sync/singleflight"

	"github.com/fermata-agents/fermata/agent"
)

// Entry is a skill as a server lists it: the front matter of SKILL.md, and all files with their
// digests.
type Entry struct {
	// Server is the worker's name of the server.
	Server string
	// URI is that of SKILL.md.
	URI string
	// Frontmatter is the front matter of SKILL.md as a JSON object.
	Frontmatter json.RawMessage
	// Files are all files, SKILL.md among them.
	Files []EntryFile
	// Read reads a file by its URI, and ends in finite time also if ctx does not. It need not compare
	// digests.
	Read func(ctx context.Context, uri string) ([]byte, error)
}

// EntryFile is a file of an [Entry].
type EntryFile struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"` // sha256: and 64 lower-case hexadecimal digits, of the file's bytes
	Size   int64  `json:"size"`   // in bytes
}

// origin is where a skill of a server comes from.
type origin struct {
	read   func(ctx context.Context, uri string) ([]byte, error)
	front  any                   // as the server lists it
	loaded atomic.Pointer[Skill] // once it was read
	reads  singleflight.Group    // of SKILL.md
}

const maxURI = 1024 // bytes of a file's URI

// FromServer returns the skill of an entry. It reads no file: [Skill.Loaded] and [Skill.ReadFile]
// do, and compare what they read with the entry. The digest is of all files, as that of a
// directory is. The error is [agent.CodeInvalidInput].
func FromServer(e Entry) (*Skill, error) {
	s := &Skill{URI: e.URI, origin: &origin{read: e.Read}}
	if err := s.take(e); err != nil {
		return nil, agent.Errorf(agent.CodeInvalidInput, "skill %+q of the MCP server %s: %w", cut(e.URI), e.Server, err).WithPath("skills")
	}
	return s, nil
}

func (s *Skill) take(e Entry) error {
	root, ok := strings.CutSuffix(e.URI, "/"+FileName)
	if !ok || len(e.URI) > maxURI || !isURI(e.URI) {
		return fmt.Errorf("it has no URI that ends in /%s", FileName)
	}
	front, err := jsonOf(e.Frontmatter, &s.origin.front)
	if err != nil {
		return fmt.Errorf("its frontmatter: %w", err)
	}
	h, _, err := readHeader(front)
	if err != nil {
		return fmt.Errorf("its frontmatter: %w", err)
	}
	s.fill(h)
	base := root[strings.LastIndexByte(root, '/')+1:]
	if err := h.check(base, s); err != nil {
		return err
	}
	if s.Name != base {
		return fmt.Errorf("its name is %s, and its URI is that of another name", s.Name)
	}
	if s.Files, err = filesOf(e, root); err != nil {
		return err
	}
	s.Server, s.Digest = e.Server, digestOf(s.Files)
	return s.Check()
}

// jsonOf returns an object without what a reader does not see, as YAML reads it: without pairs of
// surrogates.
func jsonOf(raw json.RawMessage, into *any) ([]byte, error) {
	if len(raw) > maxFrontMatter {
		return nil, fmt.Errorf("it has %d bytes, and may have %d", len(raw), maxFrontMatter)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return nil, errors.New("it is no JSON object")
	}
	if _, ok := (*into).(map[string]any); !ok {
		return nil, errors.New("it is no JSON object")
	}
	var plain bytes.Buffer
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(*into); err != nil {
		return nil, err
	}
	text, _, err := seen(plain.String())
	return []byte(text), err
}

// filesOf returns the files of an entry, sorted by path.
func filesOf(e Entry, root string) (files []File, err error) {
	if len(e.Files) > MaxFiles {
		return nil, fmt.Errorf("it has more than %d files", MaxFiles)
	}
	size := int64(0)
	for _, f := range e.Files {
		name, err := pathOf(f.URI, root)
		if err != nil {
			return nil, err
		}
		hex, ok := strings.CutPrefix(f.Digest, "sha256:")
		switch {
		case !ok || len(hex) != 64 || strings.Trim(hex, "0123456789abcdef") != "":
			return nil, fmt.Errorf("%q has no digest of the form sha256:…", name)
		case f.Size < 0 || f.Size > MaxBytes-size:
			return nil, fmt.Errorf("its files have more than %d bytes", MaxBytes)
		case slices.ContainsFunc(files, func(o File) bool { return o.Path == name }):
			return nil, fmt.Errorf("%q is there twice", name)
		}
		size += f.Size
		files = append(files, File{Path: name, Size: f.Size, Digest: hex, uri: f.URI})
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	i := slices.IndexFunc(files, func(f File) bool { return f.Path == FileName })
	switch {
	case i < 0:
		return nil, errors.New("its list of files has no " + FileName)
	case files[i].Size > maxFrontMatter+MaxInstructions:
		return nil, fmt.Errorf("%s has %d bytes, and may have %d", FileName, files[i].Size, maxFrontMatter+MaxInstructions)
	}
	return files, nil
}

// pathOf returns the path of a file in the skill's directory. No file may lie elsewhere.
func pathOf(uri, root string) (string, error) {
	rest, ok := strings.CutPrefix(uri, root+"/")
	name, err := url.PathUnescape(rest)
	switch {
	case !ok || err != nil || len(uri) > maxURI || !isURI(uri) || !fs.ValidPath(name) || name == ".":
		return "", fmt.Errorf("the file %+q is not in the skill's directory", cut(uri))
	case strings.Count(name, "/") >= MaxDepth:
		return "", fmt.Errorf("%q is more than %d directories deep", name, MaxDepth)
	}
	return name, checkPath(name)
}

// isURI reports whether a text is a URI without a query and a fragment.
func isURI(text string) bool {
	scheme, _, ok := strings.Cut(text, "://")
	return ok && scheme != "" && isSeen(text) && !strings.ContainsAny(text, "?#\\") && !strings.ContainsFunc(text, unicode.IsSpace)
}

// Loaded returns the skill with its instructions. For a skill of a directory it is the skill
// itself. For one of a server it reads SKILL.md the first time; callers that come meanwhile wait
// for the same read. After an error the next caller reads again. The error is
// [agent.CodeSkillChanged] if that is not what the server listed when the worker began,
// [agent.CodeInvalidInput] for a text that no skill may have, [agent.CodeToolFailed] if ctx ends
// first, or that of the server which does not answer.
func (s *Skill) Loaded(ctx context.Context) (*Skill, error) {
	if s.IsLoaded() {
		return s.kept(), nil
	}
	// Without the caller's end: a run that is cancelled takes the answer from no other run.
	read := s.origin.reads.DoChan("", func() (any, error) { return nil, s.load(context.WithoutCancel(ctx)) })
	select {
	case r := <-read:
		if r.Err != nil {
			return nil, r.Err
		}
		return s.kept(), nil
	case <-ctx.Done():
		return nil, agent.Errorf(agent.CodeToolFailed, "skill %s of the MCP server %s was not read in time: %w", s.Name, s.Server, context.Cause(ctx))
	}
}

// kept returns the skill as it was read.
func (s *Skill) kept() *Skill {
	if s.origin == nil {
		return s
	}
	return s.origin.loaded.Load()
}

// load reads the skill, and keeps it.
func (s *Skill) load(ctx context.Context) (err error) {
	// A panic in this goroutine would end the worker.
	defer func() {
		if p := recover(); p != nil {
			err = agent.Errorf(agent.CodeToolFailed, "skill %s of the MCP server %s can't be read: panic: %v", s.Name, s.Server, p)
		}
	}()
	if s.IsLoaded() { // since the caller looked
		return nil
	}
	main, _ := s.File(FileName)
	raw, err := s.fetch(ctx, main)
	if err != nil {
		return err
	}
	full := &Skill{Dir: s.Dir, URI: s.URI, Files: s.Files, origin: s.origin}
	if err = full.read(raw, s.Name); err == nil {
		err = s.same(raw)
	}
	full.Server, full.Digest = s.Server, s.Digest
	if err == nil {
		err = errors.Join(full.Check(), full.CheckText())
	}
	if err != nil {
		return agent.Errorf(agent.CodeInvalidInput, "skill %s of the MCP server %s: %w", s.Name, s.Server, err)
	}
	s.origin.loaded.Store(full)
	return nil
}

// ListedDigest returns the digest of all that the MCP server lists of the skill: of its front
// matter, which models read before any file is read, and of its files. For a skill of a
// directory it is Digest, since its files have the front matter.
func (s *Skill) ListedDigest() string {
	if s.origin == nil {
		return s.Digest
	}
	front, _ := json.Marshal(s.origin.front) // decoded JSON: it can't fail
	sum := sha256.Sum256(fmt.Appendf(front, "\n%s", s.Digest))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// IsLoaded reports whether [Skill.Loaded] returns at once.
func (s *Skill) IsLoaded() bool { return s.origin == nil || s.origin.loaded.Load() != nil }

// fetch reads a file from the server, and compares it with the entry.
func (s *Skill) fetch(ctx context.Context, f File) ([]byte, error) {
	data, err := s.origin.read(ctx, f.uri)
	if err != nil {
		var coded *agent.Error
		if !errors.As(err, &coded) {
			err = agent.Errorf(agent.CodeToolFailed, "%s of skill %s of the MCP server %s: %w", f.Path, s.Name, s.Server, err)
		}
		return nil, err
	}
	if int64(len(data)) != f.Size || sumOf(data) != f.Digest {
		return nil, agent.Errorf(agent.CodeSkillChanged, "%s of skill %s is not what the MCP server %s listed when the worker started; start the worker again to take the new one", f.Path, s.Name, s.Server)
	}
	return data, nil
}

// same compares the front matter of SKILL.md with that of the entry, by which the skill was chosen.
func (s *Skill) same(raw []byte) error {
	front, _, err := split(bytes.TrimPrefix(raw, []byte("\uFEFF")))
	if err != nil {
		return err
	}
	var n yaml.Node
	if err := yaml.Unmarshal(front, &n); err != nil {
		if err = yaml.Unmarshal(quote(front), &n); err != nil {
			return err
		}
	}
	value, err := valueOf(&n)
	if err == nil && !reflect.DeepEqual(value, s.origin.front) {
		err = errors.New("the front matter of " + FileName + " is not the one that the server lists")
	}
	return err
}

// valueOf returns a value of YAML as JSON has it. A date is its text.
func valueOf(n *yaml.Node) (any, error) {
	switch {
	case n.Kind == yaml.DocumentNode && len(n.Content) == 1:
		return valueOf(n.Content[0])
	case n.Kind == yaml.SequenceNode:
		list := []any{}
		for _, one := range n.Content {
			value, err := valueOf(one)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		return list, nil
	case n.Kind == yaml.MappingNode:
		fields := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			value, err := valueOf(n.Content[i+1])
			if err != nil {
				return nil, err
			}
			fields[n.Content[i].Value] = value
		}
		return fields, nil
	case n.Kind != yaml.ScalarNode: // an alias could make a short text long
		return nil, errors.New("the front matter of " + FileName + " has an alias, or is empty")
	}
	return scalarOf(n)
}

func scalarOf(n *yaml.Node) (value any, err error) {
	switch n.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!bool":
		var is bool
		err = n.Decode(&is)
		value = is
	case "!!int", "!!float":
		var number float64
		err = n.Decode(&number)
		value = number
	default:
		value = n.Value
	}
	return value, err
}

// cut shortens somebody else's text for a message.
func cut(text string) string {
	if len(text) > 300 {
		return text[:300] + "…"
	}
	return text
}
