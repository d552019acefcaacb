package store

import (
	"slices"

	"github.com/fermata-agents/fermata/agent"
)

// Sequence is the order in which the chunks of a session are copied: the files of messages and
// results that it does not have yet, then the chunks of its log from the last to the first, and after each the files that no
// chunk before it has named. Make one with [NewSequence].
type Sequence struct {
	log   string   // the next chunk of the log
	files []string // come before it
	seen  map[string]bool
}

// NewSequence returns the sequence of a log that ends with a chunk, after the files of messages that
// are not in the log yet; empty for an empty name and no files.
func NewSequence(last string, waiting ...*agent.File) *Sequence {
	s := &Sequence{log: last, seen: map[string]bool{}}
	for _, f := range waiting {
		if name, err := fileChunk(f); err == nil && !s.seen[name] { // its JSON never fails
			s.files, s.seen[name] = append(s.files, name), true
		}
	}
	return s
}

// Next returns the name of the next chunk; empty at the end.
func (s *Sequence) Next() string {
	if len(s.files) > 0 {
		return s.files[0]
	}
	return s.log
}

// inLog reports whether the next chunk is of the log, and not a file.
func (s *Sequence) inLog() bool { return len(s.files) == 0 }

// skip moves on from a file that was checked before.
func (s *Sequence) skip() { s.files = s.files[1:] }

// Take checks the stored form of the next chunk against its name, and moves on. A file may have no
// data: it was missing where the sequence comes from. Errors are
// [agent.CodeChunkDamaged] and [agent.CodeIncompatible].
func (s *Sequence) Take(data []byte) error {
	if !s.inLog() {
		if err := checkFile(s.files[0], data); len(data) > 0 && err != nil {
			return err
		}
		s.skip()
		return nil
	}
	c, err := open(s.log, data)
	if err != nil {
		return err
	}
	s.log = c.Prev()
	s.files = slices.DeleteFunc(slices.Clone(c.Files), func(name string) bool {
		again := s.seen[name]
		s.seen[name] = true
		return again
	})
	return nil
}

// checkFile checks the stored form of a file's bytes against its name.
func checkFile(name string, data []byte) error {
	var e Envelope
	if err := e.read(name, data); err != nil {
		return err
	}
	_, err := e.unwrap(name, data, kindFile)
	return err
}
