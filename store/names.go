package store

import (
	"regexp"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// Names of chunks are TAG-DIGEST, and of edges TAG~TAG-DIGEST: the session that needs a
// chunk, and that chunk. What belongs to a session has its tag in front, so that it is
// listed without anything being read.
const (
	tagDigits = 32
	ofChunk   = "-"
	ofEdge    = "~"
)

var (
	chunkForm = regexp.MustCompile(`^[0-9a-f]{32}-[0-9a-f]{64}$`)
	edgeForm  = regexp.MustCompile(`^[0-9a-f]{32}~[0-9a-f]{32}-[0-9a-f]{64}$`)
	// nameForm is that of all names that a store may be given.
	nameForm = regexp.MustCompile(`^[a-z0-9~-]{2,}(\.[a-z0-9~-]*)?$`)
)

// maxName bounds a name that a store may be given, in bytes.
const maxName = 170

// ChunkPrefix begins the names of all chunks that a session wrote: half of the SHA-256 of its
// name.
func ChunkPrefix(session string) string { return digestOf([]byte(session))[:tagDigits] }

// tagOf is the tag that a name begins with; empty if it begins with none.
func tagOf(name string) string {
	if len(name) <= tagDigits || !strings.Contains(ofChunk+ofEdge, name[tagDigits:tagDigits+1]) {
		return ""
	}
	return name[:tagDigits]
}

// isChunk reports whether a name is that of a chunk.
func isChunk(name string) bool { return chunkForm.MatchString(name) }

// isEdge reports whether a name is that of an edge.
func isEdge(name string) bool { return edgeForm.MatchString(name) }

// edgeName is the name of the edge by which a session needs a chunk and those before it.
func edgeName(session, chunk string) string {
	return chunk[:tagDigits] + ofEdge + ChunkPrefix(session) + chunk[tagDigits:]
}

// chunkOf is the chunk that an edge's name names.
func chunkOf(edge string) string { return edge[:tagDigits] + edge[2*tagDigits+1:] }

// index is what a head and an envelope say of other chunks. Every name in it is checked
// when it is read: by these names something is read, kept and deleted.
type index struct {
	refs    []Ref
	knows   *Known
	origins []Origin
	others  []string // blobs and the like; empty ones are left out
}

// check refuses, with [agent.CodeChunkDamaged], names that no chunk has, and lists that no
// writer makes. what is named as damaged.
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
