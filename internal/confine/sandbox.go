package confine

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/fermata-agents/fermata/tool"
)

// Sandbox is a way to confine programs. The tests of escapes in tool/workspace say what
// it must prevent; they are run against each sandbox.
type Sandbox interface {
	// fault says why it can't confine programs on this machine, and what to do; nil if it
	// can.
	fault(*Policy) error
	// held reports whether it confines programs to their files, and keeps them off the
	// network if the policy has none.
	held(*Policy) (files, network bool)
	// name is its name in a sentence.
	name() string
	// words describes it for people and models.
	words(*Policy) string
	// prepare sets up what a program that runs in a directory is started with.
	prepare(p *Policy, dir string) (*ready, error)
}

// ready is what a sandbox has set up to start a program.
type ready struct {
	args  []string     // the command that gets the program as its last arguments
	files []*os.File   // the descriptors that it inherits, from firstFile on
	give  func() error // drops rights of the thread that starts it
	own   []*os.File   // files to close after the start
}

// firstFile is the first descriptor that a program inherits, after its gate.
const firstFile = 4

// inherit passes a file to the program, and returns its number there.
func (r *ready) inherit(f *os.File) string {
	r.files = append(r.files, f)
	return strconv.Itoa(firstFile + len(r.files) - 1)
}

func (r *ready) close() {
	for _, f := range r.own {
		f.Close()
	}
}

// sandboxes are the known sandboxes by name.
var sandboxes = map[tool.Sandbox]Sandbox{tool.SandboxLandlock: landlock{}, tool.SandboxBubblewrap: bubblewrap{}}

// Sandboxes returns the names of the known sandboxes, sorted.
func Sandboxes() []tool.Sandbox { return slices.Sorted(maps.Keys(sandboxes)) }

// sandbox returns what confines programs under the policy.
func (p *Policy) sandbox() Sandbox {
	if p.Sandbox == "" {
		return landlock{}
	}
	return sandboxes[p.Sandbox]
}

// Check returns what is wrong with the options that say how a program is confined, and
// the option's name in an agents file; both are empty if nothing is.
func Check(sandbox tool.Sandbox, how tool.Confine) (field, fault string) {
	var names []string
	for _, name := range Sandboxes() {
		names = append(names, string(name))
	}
	switch {
	case !how.Known():
		return "confine", fmt.Sprintf("confine is %q: write %s, %s or %s, or leave it out", how, tool.ConfineAlways, tool.ConfineWherePossible, tool.ConfineNever)
	case sandbox != "" && sandboxes[sandbox] == nil:
		return "sandbox", fmt.Sprintf("sandbox is %q: write %s, or leave it out", sandbox, strings.Join(names, " or "))
	case sandbox == tool.SandboxBubblewrap && how != "" && how != tool.ConfineAlways:
		return "sandbox", fmt.Sprintf("sandbox %s goes with confine: %s alone", sandbox, tool.ConfineAlways)
	}
	return "", ""
}
