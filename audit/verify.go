package audit

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Head is an entry's number and the digest of its line, N:SHA256. Keep it where the
// record's writer cannot change it. Later it proves that the record up to there is the
// same.
type Head struct {
	N      int64
	Digest string
}

// String implements [fmt.Stringer].
func (h Head) String() string { return fmt.Sprintf("%d:%s", h.N, h.Digest) }

// ParseHead parses N:SHA256. Its errors are [agent.CodeInvalidInput].
func ParseHead(s string) (Head, error) {
	n, digest, ok := strings.Cut(s, ":")
	h := Head{Digest: digest}
	var err error
	if h.N, err = strconv.ParseInt(n, 10, 64); !ok || err != nil || h.N < 1 || len(digest) != len(first) {
		return h, agent.Errorf(agent.CodeInvalidInput, "head %.100q: use N:SHA256, as fermata audit verify prints it", s)
	}
	return h, nil
}

// Report describes a record.
type Report struct {
	Entries int64
	Head    Head
	Begun   time.Time // the time of the first entry
	Last    time.Time // the time of the last entry
	// Open is how many processes had not closed the record at its end.
	Open int
	// Quiet is the last entry of the process that has been silent for longest. Only
	// processes count that are open and wrote after the last kept head; zero if there are
	// none. Each writes at least every [AliveInterval]. If Quiet is older, the process
	// was killed, or a later writer cut off its entries.
	Quiet time.Time
}

// lastEntry is a process's last entry.
type lastEntry struct {
	n  int64
	at time.Time
}

// maxLine limits a line, in bytes.
const maxLine = 64 << 10

// Verify reads a record to its end and proves that it is complete: every line is signed
// with the key, and none is missing, changed, repeated or moved. heads are heads that
// were kept elsewhere, and must be in it. Its errors are [agent.CodeBadSignature] and
// name the line. The report describes the part before the error.
func Verify(record io.Reader, key ed25519.PublicKey, heads ...Head) (r Report, err error) {
	lines := bufio.NewReaderSize(record, maxLine)
	open := map[string]lastEntry{}
	prev := first
	for {
		line, err := lines.ReadSlice('\n')
		switch {
		case err == io.EOF && len(line) == 0:
			return r.end(open, heads)
		case errors.Is(err, bufio.ErrBufferFull):
			return r, damage(r, agent.Errorf(agent.CodeBadSignature, "it is longer than %d bytes", maxLine))
		case err == io.EOF:
			return r, damage(r, agent.Errorf(agent.CodeBadSignature, "it is not complete: its writer was killed, and no process has written since; or the record was cut off there"))
		case err != nil:
			return r, fmt.Errorf("reading the record: %w", err)
		}
		e, err := r.next(bytes.TrimSuffix(line, []byte("\n")), key, prev)
		if err != nil {
			return r, damage(r, err)
		}
		prev = digest(line)
		r.Entries, r.Last, r.Head = e.N, e.Time, Head{e.N, prev}
		if e.N == 1 {
			r.Begun = e.Time
		}
		// A process that has closed the record may be silent.
		if open[e.Process] = (lastEntry{e.N, e.Time}); e.Kind == KindClosed {
			delete(open, e.Process)
		}
		for _, h := range heads {
			if h.N == e.N && h.Digest != prev {
				return r, agent.Errorf(agent.CodeBadSignature, "entry %d differs from the kept head: the record was rewritten", e.N)
			}
		}
	}
}

// next parses a line that must follow the ones before it.
func (r Report) next(line []byte, key ed25519.PublicKey, prev string) (Entry, error) {
	e, err := open(line, key)
	switch {
	case err != nil:
		return e, err
	case e.N != r.Entries+1:
		return e, agent.Errorf(agent.CodeBadSignature, "it is entry %d: entries are missing, doubled or in another order", e.N)
	case e.Prev != prev:
		return e, agent.Errorf(agent.CodeBadSignature, "it names another line than the one before it")
	}
	return e, nil
}

func (r Report) end(open map[string]lastEntry, heads []Head) (Report, error) {
	r.Open = len(open)
	kept := int64(0)
	for _, h := range heads {
		if kept = max(kept, h.N); h.N > r.Entries {
			return r, agent.Errorf(agent.CodeBadSignature, "the record ends with entry %d, and the head that was kept is entry %d: its end was cut off", r.Entries, h.N)
		}
	}
	for _, last := range open {
		if last.n > kept && (r.Quiet.IsZero() || last.at.Before(r.Quiet)) {
			r.Quiet = last.at
		}
	}
	return r, nil
}

func damage(r Report, err error) error {
	return agent.Errorf(agent.CodeOf(err), "line %d of the audit: %w", r.Entries+1, err)
}
