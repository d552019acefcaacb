package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

// checkPins says which tools of a server runs go without.
func (d *doctor) checkPins(s agentsfile.ServerState) {
	l := d.file.Lock()
	switch {
	case s.Err != nil || s.SignIn:
		return
	case l == nil || !d.file.Pinned(s.Name):
		d.found("lock", verdictOK, s.Name+" is not pinned: its tools are taken as they are each time", "")
		return
	}
	changes, was, err := l.Compare(s.Name, s.Listed, &s.Instructions)
	switch {
	case err != nil:
		d.failed("lock", err, "")
	case !was:
		if err := l.CheckWrite(); err != nil {
			d.failed("lock", err, "")
			return
		}
		d.found("lock", verdictOK, fmt.Sprintf("%s is pinned in %s when it is first used", s.Name, filepath.Base(l.Path())), "")
	case len(changes) == 0:
		d.found("lock", verdictOK, s.Name+" is as it was accepted", "")
	default:
		var names []string
		for _, c := range changes {
			names = append(names, untrusted.Name(c.Name))
		}
		d.found("lock", verdictWarning, fmt.Sprintf("%s is not as it was accepted, and runs go without %s", s.Name, strings.Join(names, ", ")), "look at it with fermata lock, then fermata lock --accept "+s.Name)
	}
}
