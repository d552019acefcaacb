package store

import "slices"

// Sequence is the order in which the chunks of a session are copied: those of its log from
// the last to the first, and after each the files that no chunk before it has named. Make one
// with [NewSequence].
type Sequence struct {
	log   string   // the next chunk of the log
	files []string // come before it
	seen  map[string]bool
}

// NewSequence returns the sequence of a log that ends with a chunk; empty for an empty name.
func NewSequence(last string) *Sequence { return &Sequence{log: last, seen: map[string]bool{}} }

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
