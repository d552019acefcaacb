package files

import (
	"fmt"
	"io"
	"os"
)

// Read reads a file that a flag names, of at most so many bytes: a wrong path may lead to
// an endless file.
func Read(path string, most int) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err == nil && len(raw) > most {
		err = fmt.Errorf("%s has more than %d bytes", path, most)
	}
	return raw, err
}
