package confine

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// mount is a directory or file of a file system, and where it is mounted.
type mount struct {
	device string
	root   string // the path within the file system
	at     string
}

// mounts returns the mounts of this machine; none if they can't be read.
func mounts() (list []mount) {
	text, err := os.ReadFile("/proc/thread-self/mountinfo")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		// 36 35 98:0 /root /at options …
		if fields := strings.Fields(line); len(fields) > 4 {
			list = append(list, mount{fields[2], unescaped(fields[3]), unescaped(fields[4])})
		}
	}
	return list
}

// unescaped decodes a path of mountinfo, where a space is \040.
func unescaped(path string) string {
	for i := 0; i+3 < len(path); i++ {
		if c, err := strconv.ParseUint(path[i+1:i+4], 8, 8); path[i] == '\\' && err == nil {
			path = path[:i] + string([]byte{byte(c)}) + path[i+4:]
		}
	}
	return path
}

// spot is where a path lies in its file system, wherever that is mounted.
type spot struct{ device, path string }

func (s spot) in(other spot) bool {
	return s.device == other.device && s.device != "" && within(other.path, s.path)
}

// spotOf returns the spot of a path without symlinks.
func spotOf(list []mount, path string) (s spot) {
	longest := -1
	for _, m := range list {
		// Of two mounts at one place, the later one is visible.
		if len(m.at) >= longest && within(m.at, path) {
			rel, err := filepath.Rel(m.at, path)
			if err == nil {
				longest, s = len(m.at), spot{m.device, filepath.Join(m.root, rel)}
			}
		}
	}
	return s
}

// mountedIn returns which path is visible in a directory through another mount, or
// contains it; empty if none.
func (p Places) mountedIn(dir string) string {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return ""
	}
	list := mounts()
	seen := []spot{spotOf(list, real)}
	for _, m := range list {
		if within(real, m.at) {
			seen = append(seen, spot{m.device, m.root})
		}
	}
	for _, each := range p {
		own := spotOf(list, filepath.Join(each.at, each.name))
		for _, s := range seen {
			if own.in(s) {
				return each.path
			}
		}
	}
	return ""
}

// mountedAround returns which path contains a directory through another mount; empty if
// none.
func (p Places) mountedAround(dir string) string {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return ""
	}
	list := mounts()
	s := spotOf(list, real)
	for _, each := range p {
		if s.in(spotOf(list, filepath.Join(each.at, each.name))) {
			return each.path
		}
	}
	return ""
}
