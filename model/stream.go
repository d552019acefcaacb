package model

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// Events reads server-sent events: take is called with the data of each, and an error of
// it ends the reading. Comments, names and blank events are passed over. Lines end as the
// standard says, with a line feed, a carriage return or both, and a byte order mark may
// stand before them. The last event needs no blank line behind it if it is whole. A line,
// and an event, has at most 16 MiB.
func Events(body io.Reader, take func(data []byte) error) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxWhole)
	lines.Split((&splitter{}).split)
	var data []byte
	for first := true; lines.Scan(); first = false {
		line := lines.Bytes()
		if first {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			if data = append(append(data, rest...), '\n'); len(data) > maxWhole {
				return errTooLong
			}
		}
		if event := bytes.TrimSpace(data); len(line) == 0 {
			data = nil
			if len(event) == 0 {
				continue
			}
			if err := take(event); err != nil {
				return err
			}
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return errTooLong
	} else if err != nil {
		return err
	}
	if event := bytes.TrimSpace(data); json.Valid(event) {
		return take(event)
	}
	return nil
}

// splitter splits a stream into lines.
type splitter struct {
	returned bool // the last line ended with a carriage return
	seen     int  // bytes of the line that were looked at: it may come in many pieces
}

// split hands a line on as soon as its end is there: whether a line feed follows a
// carriage return may be known only with the next event.
func (s *splitter) split(data []byte, atEOF bool) (advance int, line []byte, err error) {
	if s.returned && len(data) > 0 && data[0] == '\n' {
		advance = 1
	}
	if len(data) > 0 {
		s.returned = false
	}
	rest := data[advance:]
	seen := s.seen
	s.seen = 0
	switch i := seen + bytes.IndexAny(rest[seen:], "\r\n"); {
	case i >= seen:
		s.returned = rest[i] == '\r'
		return advance + i + 1, rest[:i:i], nil
	case atEOF && len(rest) > 0:
		return len(data), rest, nil
	}
	s.seen = len(rest)
	return advance, nil, nil
}
