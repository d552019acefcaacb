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

// Sandbox is a way to hold programs. What it must hold them from, the escapes in
// tool/workspace say: they are tried against every one.
type Sandbox interface {
	// fault says why it can't hold programs on this machine, and what to do; nil if it can.
	fault(*Policy) error
	// held reports whether it keeps programs to their files and, where the policy has no
	// network, from that.
	held(*Policy) (files, network bool)
	// name is what it is called in a sentence.
	name() string
	// words says what it is, for people and models.
	words(*Policy) string
	// prepare makes ready what a program that runs in a directory is started with.
	prepare(p *Policy, dir string) (*ready, error)
}

// ready is what a sandbox has made ready to start a program.
type ready struct {
	args  []string     // the command that takes the program's own as its last arguments
	files []*os.File   // what that inherits, from firstFile on
	give  func() error // takes rights from the thread that starts it
	own   []*os.File   // open until it has started
}

// firstFile is the number of the first descriptor that a program inherits, after its gate.
const firstFile = 4

// inherit gives a file to the program, and tells by which number.
func (r *ready) inherit(f *os.File) string {
	r.files = append(r.files, f)
	return strconv.Itoa(firstFile + len(r.files) - 1)
}

func (r *ready) close() {
	for _, f := range r.own {
		f.Close()
	}
}

// sandboxes are those that there are, by their names.
var sandboxes = map[tool.Sandbox]Sandbox{tool.SandboxLandlock: landlock{}, tool.SandboxBubblewrap: bubblewrap{}}

// Sandboxes are the names of those that there are.
func Sandboxes() []tool.Sandbox { return slices.Sorted(maps.Keys(sandboxes)) }

// sandbox is what holds programs under the policy.
func (p *Policy) sandbox() Sandbox {
	if p.Sandbox == "" {
		return landlock{}
	}
	return sandboxes[p.Sandbox]
}

// Check reports what is wrong with the words that say how a program is held, and which of
// them it is by its name in an agents file; empty if nothing.
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
