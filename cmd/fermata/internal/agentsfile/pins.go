package agentsfile

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/tool/lock"
)

// Lock returns the lock file beside the agents file: fermata.lock beside fermata.yaml. It
// is nil if the agents file is not a regular file, such as a pipe.
func (f *File) Lock() *lock.File {
	if info, err := os.Stat(f.Path); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	return lock.At(f.lockPath())
}

func (f *File) lockPath() string {
	base := filepath.Base(f.Path)
	return filepath.Join(f.Dir, strings.TrimSuffix(base, filepath.Ext(base))+".lock")
}

// Pins returns what limits the MCP servers to accepted tools, except for unpinned
// servers.
func (f *File) Pins() tool.Pins {
	l := f.Lock()
	if l == nil {
		return nil
	}
	p := some{Pins: l}
	// Collected when the worker starts: the file does not change while it runs.
	for name, s := range f.servers {
		if s.Unpinned {
			p.free = append(p.free, name)
		}
	}
	return p
}

// Pinned reports whether a server is limited to accepted tools.
func (f *File) Pinned(server string) bool { return !f.servers[server].Unpinned }

// UsesServer reports whether some agent uses the tools of an MCP server.
func (f *File) UsesServer(server string) bool {
	_, used := f.usesTools()
	return slices.Contains(used, server)
}

// some limits all sources except for those in free.
type some struct {
	tool.Pins
	free []string
}

func (s some) Filter(source string, tools []agent.ToolSpec, words *string) (tool.Held, error) {
	if slices.Contains(s.free, source) {
		return tool.Held{Tools: tools}, nil
	}
	return s.Pins.Filter(source, tools, words)
}
