package main

import (
	"context"
	"encoding/json"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/audit"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
	"github.com/fermata-agents/fermata/store"
)

// memoryExport is a file with a memory.
type memoryExport struct {
	V    int    `json:"v"`
	Type string `json:"type"` // memory
	store.MemoryOwner
	Files []memoryEntry `json:"files"`
}

// memoryEntry is one file of it.
type memoryEntry struct {
	Path string `json:"path"`
	Text string `json:"text"`
}

// maxMemoryExport is the longest file that is read, in bytes: escapes make texts longer.
const maxMemoryExport = 8 * store.MaxMemory

func (c *cli) memoryExportCommand() *cobra.Command {
	o, output, force := &memoryOrder{cli: c}, "", false
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write a memory to a file",
		Long: `Export writes all files of a memory to one file of JSON, unencrypted. Only you can read
it. fermata memory import reads it.`,
		Example: `  fermata memory export --agent clerk -o clerk.json
  fermata memory export --agent clerk -o - | jq -r '.files[].path'`,
		Args: exactArgs(0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.export(cmd.Context(), output, force) },
	}
	o.ownerFlags(cmd, ofAgent)
	cmd.Flags().StringVarP(&output, "output", "o", "", "file to write; - is standard output; required")
	cmd.Flags().BoolVar(&force, "force", false, "replace the file that is there")
	c.jsonFlag(cmd, "print what was written as one line of JSON")
	return cmd
}

// memoryDone is the output of memory export, import and rm with --json.
type memoryDone struct {
	V int `json:"v"`
	store.MemoryOwner
	// Paths are the files that were written or deleted. A memory that was deleted whole has none.
	Paths  []string `json:"paths,omitempty"`
	Output string   `json:"output,omitempty"`
}

func (o *memoryOrder) export(ctx context.Context, output string, force bool) error {
	switch {
	case output == "":
		return agent.Errorf(agent.CodeInvalidInput, "name the file to write with -o; -o - writes to standard output")
	case output == "-" && o.JSON:
		return agent.Errorf(agent.CodeInvalidInput, "-o - and --json exclude each other: both write to standard output")
	}
	if err := mayWrite(output, force); err != nil {
		return err
	}
	m, err := o.memory(ctx)
	if err != nil {
		return err
	}
	files, _, err := m.List(ctx)
	if err != nil {
		return err
	}
	out, done := memoryExport{V: agent.Version, Type: "memory", MemoryOwner: o.owner, Files: []memoryEntry{}}, memoryDone{V: agent.Version, MemoryOwner: o.owner, Output: output}
	for _, f := range files {
		text, err := m.Read(ctx, f)
		if err != nil {
			return err
		}
		out.Files, done.Paths = append(out.Files, memoryEntry{f.Path, text}), append(done.Paths, f.Path)
	}
	if err := o.recorded("memory export"); err != nil {
		return err
	}
	data, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return err
	}
	return o.writeFile(output, append(data, '\n'), done, counted(len(files), "file"))
}

// recorded writes to the audit what is done with a memory, before it is done.
func (o *memoryOrder) recorded(what string) error {
	return o.host.Audit.Key(audit.Entry{What: what, Principal: o.owner.Principal, Agent: o.owner.Agent, By: byOr("")})
}

func (c *cli) memoryImportCommand() *cobra.Command {
	o, force := &memoryOrder{cli: c}, false
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Read a memory from a file",
		Long: `Import writes the files of an export into a memory: that of --principal and --agent,
whatever the export says. Either all are written or none. A file that is there with
another text is refused without --force.`,
		Example: `  fermata memory import clerk.json --agent clerk
  fermata memory import clerk.json --agent clerk --principal bob@acme.com --force`,
		Args: exactArgs(1, "a file"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.imports(cmd.Context(), args[0], force) },
	}
	o.ownerFlags(cmd, ofAgent)
	cmd.Flags().BoolVar(&force, "force", false, "replace files that are there")
	c.jsonFlag(cmd, "print what was written as one line of JSON")
	return cmd
}

func (o *memoryOrder) imports(ctx context.Context, path string, force bool) error {
	in, err := readMemory(path)
	if err != nil {
		return err
	}
	m, err := o.memory(ctx)
	if err != nil {
		return err
	}
	if err := o.recorded("memory import"); err != nil {
		return err
	}
	done := memoryDone{V: agent.Version, MemoryOwner: o.owner}
	for _, f := range in.Files {
		done.Paths = append(done.Paths, f.Path)
	}
	_, err = m.Change(ctx, store.MemoryChange{Edit: func(ctx context.Context, e *store.MemoryEdit) (string, error) {
		for _, f := range in.Files {
			if old, ok := e.Find(f.Path); ok && !force {
				text, err := e.Read(ctx, old)
				if err != nil {
					return "", err
				}
				if text != f.Text {
					return "", agent.Errorf(agent.CodeInvalidInput, "%s is there already with another text; nothing was written. Add --force to replace it", f.Path).WithPath("path")
				}
				continue
			}
			if err := e.Write(ctx, f.Path, f.Text); err != nil {
				return "", err
			}
		}
		return "", nil
	}})
	if err != nil {
		return err
	}
	return o.tellDone("imported", done)
}

// tellDone prints what was done.
func (o *memoryOrder) tellDone(verb string, done memoryDone) error {
	if o.JSON {
		o.Line(done)
		return nil
	}
	o.Print("%s %s of agent %s for %s", verb, counted(len(done.Paths), "file"), untrusted.Name(o.owner.Agent), untrusted.Name(o.owner.Principal))
	return nil
}

// readMemory reads an export, and checks it.
func readMemory(path string) (in memoryExport, err error) {
	f, err := os.Open(path)
	if err != nil {
		return in, agent.Errorf(agent.CodeInvalidInput, "the export can't be read: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxMemoryExport+1))
	switch {
	case err != nil:
		return in, agent.Errorf(agent.CodeInvalidInput, "the export can't be read: %w", err)
	case len(data) > maxMemoryExport:
		return in, agent.Errorf(agent.CodeTooLarge, "%s has more than %d bytes, and is no export of a memory", path, maxMemoryExport)
	}
	if err := json.Unmarshal(data, &in); err != nil || in.Type != "memory" {
		return in, agent.Errorf(agent.CodeInvalidInput, "%s is no export of a memory; make one with fermata memory export", path)
	}
	if in.V != agent.Version {
		return in, agent.Errorf(agent.CodeIncompatible, "%s has version %d; this build reads version %d", path, in.V, agent.Version)
	}
	for i := range in.Files {
		p := &in.Files[i].Path
		if *p, err = store.CheckMemoryPath(*p); err == nil && *p == store.MemoryRoot {
			err = agent.Errorf(agent.CodeInvalidInput, "%s is no file", *p).WithPath("path")
		}
		if err != nil {
			return in, err
		}
	}
	return in, nil
}
