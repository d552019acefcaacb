package workspace

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
)

const (
	keepHead = 16 << 10 // of a command's output, the beginning
	keepTail = 32 << 10 // and the end
	maxSaid  = 160      // bytes of a line that is reported as progress
)

// output keeps the beginning and the end of what is written to it. It may be read while
// it is written.
type output struct {
	mu    sync.Mutex
	head  []byte
	tail  []byte // at most twice keepTail; only its end is used
	total int64
	said  int64 // total at the last call of news
}

// Write keeps b as far as it belongs to the beginning or the end. It never fails.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(b)
	o.total += int64(n)
	if room := keepHead - len(o.head); room > 0 {
		take := min(room, len(b))
		o.head, b = append(o.head, b[:take]...), b[take:]
	}
	if len(b) > keepTail {
		b = b[len(b)-keepTail:]
	}
	// Move the tail only when it has doubled: moving at each write would be quadratic.
	if o.tail = append(o.tail, b...); len(o.tail) > 2*keepTail {
		o.tail = append(o.tail[:0], o.tail[len(o.tail)-keepTail:]...)
	}
	return n, nil
}

// String returns the output. If it was too long, a note replaces its middle.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	tail := o.tail[max(0, len(o.tail)-keepTail):]
	left := o.total - int64(len(o.head)+len(tail))
	if left == 0 {
		return clean(append(bytes.Clone(o.head), tail...))
	}
	return fmt.Sprintf("%s\n[… %d bytes left out …]\n%s", clean(o.head), left, clean(tail))
}

// news returns the last line written since the last call of news; empty if there is none.
func (o *output) news() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.total == o.said {
		return ""
	}
	o.said = o.total
	end := o.tail
	if len(end) == 0 {
		end = o.head
	}
	end = bytes.TrimRight(end[max(0, len(end)-4096):], "\r\n\t ")
	line := end[bytes.LastIndexAny(end, "\r\n")+1:]
	line = line[:min(len(line), maxSaid)]
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, clean(line))
}
