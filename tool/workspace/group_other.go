//go:build !unix

package workspace

import (
	"errors"

	"github.com/fermata-agents/fermata/internal/confine"
)

const nonblock = 0

// group has no meaning here: there is no shell of this kind.
type group struct {
	out    *output
	exited chan struct{}
}

func (*Workspace) start(command) (*group, error) { return nil, errors.ErrUnsupported }

func (*group) end() []confine.Survivor { return nil }

func (*group) exitStatus() (int, bool) { return 0, false }
func (*group) status() string          { return "" }
