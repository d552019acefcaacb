package model

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// Events reads server-sent events, and calls take with the data of each. An error of take
// ends the reading. Comments, names and empty events are skipped. As the standard says, a
// line ends with a line feed, a carriage return or both, and the stream may begin with a
// byte order mark. If the last event is complete JSON, it needs no blank line after it. A
// line or an event has at most 16 MiB.
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
	// Some servers leave out the last blank line. A cut event is not valid JSON.
	if event := bytes.TrimSpace(data); json.Valid(event) {
		return take(event)
	}
	return nil
}

// splitter splits a stream into lines.
type splitter struct {
	returned bool // the last line ended with a carriage return
	seen     int  // bytes of the line that were searched already: it may come in many pieces
}

// split returns a line as soon as its end has come. It does not wait after a carriage
// return: whether a line feed follows may be known only with the next event.
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
