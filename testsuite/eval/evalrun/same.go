package evalrun

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite/eval"
)

// Same returns [agent.CodeDenied] unless the evaluation began with this suite, and with
// these files of it in dir. It needs no worker.
func (h *Handle) Same(ctx context.Context, s *eval.Suite, dir string) error {
	in, err := h.input(ctx)
	if err != nil {
		return err
	}
	asked := *s // what it leaves out is as the evaluation began: this build may have other defaults
	asked.AtOnce, asked.Timeout = cmp.Or(s.AtOnce, in.Definition.AtOnce), cmp.Or(s.Timeout, in.Definition.Timeout)
	if !sameJSON(in.Definition, &asked) {
		return agent.Errorf(agent.CodeDenied, "the evaluation %s began with another suite, or with other --case, --trials, --limit or --sample: name those, or start a new evaluation", h.ID)
	}
	digests, err := fileDigests(s, dir)
	if err != nil {
		return err
	}
	if !maps.Equal(digests, in.Digests) {
		return agent.Errorf(agent.CodeDenied, "the files of the suite have changed since the evaluation %s began: restore them, or start a new evaluation", h.ID)
	}
	return nil
}

// fileDigests returns the digests of all files of a suite, by path.
func fileDigests(s *eval.Suite, dir string) (map[string]string, error) {
	digests := map[string]string{}
	for _, one := range s.Cases {
		for _, path := range one.Files {
			data, err := readFile(dir, path)
			if err != nil {
				return nil, err
			}
			digests[path] = digestOf(data)
		}
	}
	return digests, nil
}

// allowed returns [agent.CodeDenied] for a case that [Options.Suite] does not have.
// Whoever may write to the server chooses the inputs of steps.
func (s *steps) allowed(c *eval.Case) error {
	if s.o.Suite == nil {
		return nil
	}
	for i := range s.o.Suite.Cases {
		if own := s.o.Suite.Complete(i); own.Name == c.Name && sameJSON(own, c) {
			return nil
		}
	}
	return agent.Errorf(agent.CodeDenied, "the case %q is not as in the suite of this evaluator: nothing of it is run", c.Name)
}

// sameJSON compares values as a history would record them.
func sameJSON(a, b any) bool {
	x, err := json.Marshal(a)
	y, other := json.Marshal(b)
	return err == nil && other == nil && bytes.Equal(x, y)
}
