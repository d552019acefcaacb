package store

import (
	"regexp"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// Names of chunks are TAG-DIGEST. Names of edges are TAG~TAG-DIGEST, with the tag of the
// session that needs the chunk as the second. A session's entries begin with its tag, so
// that they are listed without reading anything.
const (
	tagDigits = 32
	ofChunk   = "-"
	ofEdge    = "~"
)

var (
	chunkForm = regexp.MustCompile(`^[0-9a-f]{32}-[0-9a-f]{64}$`)
	edgeForm  = regexp.MustCompile(`^[0-9a-f]{32}~[0-9a-f]{32}-[0-9a-f]{64}$`)
	// nameForm is the form of all names that a store may get.
	nameForm = regexp.MustCompile(`^[a-z0-9~-]{2,}(\.[a-z0-9~-]*)?$`)
)

// maxName is the longest name that a store may get, in bytes.
const maxName = 170

// ChunkPrefix returns the beginning of the names of all chunks that a session wrote: half
// of the SHA-256 of its name.
func ChunkPrefix(session string) string { return digestOf([]byte(session))[:tagDigits] }

// tagOf returns the tag at the beginning of a name; empty if there is none.
func tagOf(name string) string {
	if len(name) <= tagDigits || !strings.Contains(ofChunk+ofEdge, name[tagDigits:tagDigits+1]) {
		return ""
	}
	return name[:tagDigits]
}

// isChunk reports whether a name is a chunk's.
func isChunk(name string) bool { return chunkForm.MatchString(name) }

// isEdge reports whether a name is an edge's.
func isEdge(name string) bool { return edgeForm.MatchString(name) }

// edgeName returns the name of the edge by which a session needs a chunk and those before
// it.
func edgeName(session, chunk string) string {
	return chunk[:tagDigits] + ofEdge + ChunkPrefix(session) + chunk[tagDigits:]
}

// chunkOf returns the name of the chunk in an edge's name.
func chunkOf(edge string) string { return edge[:tagDigits] + edge[2*tagDigits+1:] }

// index is what a head or an envelope says about other chunks. Every name is checked when
// it is read, because chunks are read, kept and deleted by these names.
type index struct {
	refs    []Ref
	knows   *Known
	origins []Origin
	others  []string // blobs and the like; empty ones are skipped
}

// check returns [agent.CodeChunkDamaged] for names that no chunk has, and for lists that
// no writer makes. what is what the error calls damaged.
func (i index) check(what string) error {
	wrong := func(format string, args ...any) error {
		return agent.Errorf(agent.CodeChunkDamaged, "%s is damaged: "+format+"; restore it from a backup of the store", append([]any{what}, args...)...)
	}
	names, seen := i.others, map[string]bool{}
	if i.knows != nil {
		names = append(names[:len(names):len(names)], i.knows.Chunk)
	}
	for _, r := range i.refs {
		if seen[r.Chunk] {
			return wrong("it names chunk %.120s twice", r.Chunk)
		}
		seen[r.Chunk] = true
		if r.First < 0 || r.Size < 0 || r.Size > maxPlain || !isChunk(r.Chunk) {
			return wrong("it names %.120q, which is no chunk", r.Chunk)
		}
	}
	for _, o := range i.origins {
		if !isChunk(o.Chunk) || tagOf(o.Chunk) != ChunkPrefix(o.Session) {
			return wrong("it names %.120q, which is no chunk of session %.255s", o.Chunk, o.Session)
		}
	}
	for _, name := range names {
		if name != "" && !isChunk(name) {
			return wrong("it names %.120q, which is no chunk", name)
		}
	}
	return nil
}
