package gemini

import (
	"bufio"
	"bytes"
	"io"
)

// maxLine bounds a line of a stream, in bytes: an event is one line.
const maxLine = 64 << 20

// events reads server-sent events: each is called with its data. Comments, names
// and blank events are passed over. The last event needs no blank line behind it.
func events(body io.Reader, take func(data []byte) error) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxLine)
	var data []byte
	flush := func() error {
		event := bytes.TrimSpace(data)
		data = nil
		if len(event) == 0 || string(event) == "[DONE]" {
			return nil
		}
		return take(event)
	}
	for lines.Scan() {
		line := lines.Bytes()
		if len(line) == 0 {
			if err := flush(); err != nil {
				return err
			}
			continue
		}
		if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(append(data, rest...), '\n')
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return flush()
}
