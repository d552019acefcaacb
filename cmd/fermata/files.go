package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

// filesOrder is what to list or save, and where.
type filesOrder struct {
	session, file, output string
	force                 bool
}

func (c *cli) filesCommand() *cobra.Command {
	var o filesOrder
	cmd := &cobra.Command{
		Use:   "files SESSION [FILE]",
		Short: "List the files of a session, or save one",
		Long: `Files lists the files that the messages of a session show, from the session's log: the
event and turn of the message, and the file's digest, size, type and name. With FILE and
-o it saves one file. FILE is the file's name, the beginning of its digest, or the name
that models have for it, as chart.png#3f9a0c1b. Only you can read the file that it
writes.

The command needs the workers' store. Without a live run no server is needed. A
sub-agent's files are in its own session.`,
		Example: `  fermata files invoice-118
  fermata files invoice-118 chart.png -o chart.png
  fermata files invoice-118 3f9a0c -o - | file -
  fermata files invoice-118 --json | jq -r 'select(.media_type=="application/pdf").name'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return nil
			}
			return exactArgs(1, "a session, and a file at most")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.session = args[0]
			if len(args) == 2 {
				o.file = args[1]
			}
			return c.files(cmd.Context(), o, len(args) == 2)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "", "where to save FILE; - is standard output")
	f.BoolVar(&o.force, "force", false, "replace the file that is there")
	c.jsonFlag(cmd, "print each file, or the saved one, as a line of JSON")
	return cmd
}

// fileLine is the output of files --json.
type fileLine struct {
	V int `json:"v"`
	fermata.SessionFile
	// Output is where the file was saved.
	Output string `json:"output,omitempty"`
}

func (c *cli) files(ctx context.Context, o filesOrder, one bool) error {
	switch {
	case !one && (o.output != "" || o.force):
		return agent.Errorf(agent.CodeInvalidInput, "-o and --force are for one file: name it, or its digest, after the session")
	case !one:
		return c.ReadLog(ctx, o.session, func(runs *fermata.Client) error { return c.listFiles(ctx, runs, o.session) })
	case o.output == "":
		return agent.Errorf(agent.CodeInvalidInput, "name the file to write with -o; -o - writes to standard output")
	case o.output == "-" && c.JSON:
		return agent.Errorf(agent.CodeInvalidInput, "-o - and --json exclude each other: both write to standard output")
	case o.file == "" || strings.ContainsAny(o.file, `/\`):
		return agent.Errorf(agent.CodeInvalidInput, "%q is no file of a session: name it without folders, or by its digest", o.file)
	}
	if err := mayWrite(o.output, o.force); err != nil {
		return err
	}
	return c.ReadLog(ctx, o.session, func(runs *fermata.Client) error {
		found, err := findFile(ctx, runs, o.session, o.file)
		if err != nil {
			return err
		}
		data, err := runs.File(ctx, &found.File)
		if err != nil {
			return err
		}
		return c.saveFile(o, found, data)
	})
}

func (c *cli) listFiles(ctx context.Context, runs *fermata.Client, session string) error {
	all, err := everyOf(runs.Files(ctx, session))
	if err != nil {
		return err
	}
	t := c.Table()
	defer t.Flush()
	for i, f := range all {
		switch {
		case c.JSON:
			c.Line(fileLine{V: agent.Version, SessionFile: f})
		default:
			if i == 0 {
				t.Row("EVENT", "TURN", "FROM", "DIGEST", "BYTES", "TYPE", "NAME")
			}
			t.Row(f.Seq, f.Turn, f.Role, shortDigest(f.Digest), f.Size, untrusted.Name(f.MediaType), cmp.Or(untrusted.Name(f.Name), "-"))
		}
	}
	if len(all) == 0 {
		c.Note("no message of session %s shows a file", session)
	}
	return nil
}

// everyOf returns all that a sequence yields, unless it fails.
func everyOf[T any](each iter.Seq2[T, error]) (all []T, err error) {
	for one, err := range each {
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// shortDigest returns the beginning of a digest for people. A log may have a digest that is too short.
func shortDigest(digest string) string { return digest[:min(12, len(digest))] }

// findFile returns the file of a session that has a name, handle or digest, or whose digest begins so.
// A whole digest is never taken for a name.
func findFile(ctx context.Context, runs *fermata.Client, session, named string) (found fermata.SessionFile, err error) {
	var digests []string
	for f, err := range runs.Files(ctx, session) {
		switch {
		case err != nil:
			return found, err
		case f.Digest == named:
			return f, nil
		case f.Name != named && f.Handle() != named && !strings.HasPrefix(f.Digest, named) || slices.Contains(digests, shortDigest(f.Digest)):
			continue
		}
		if found = f; len(digests) < 8 {
			digests = append(digests, shortDigest(f.Digest))
		}
	}
	switch len(digests) {
	case 0:
		return found, agent.Errorf(agent.CodeNotFound, "no message of session %s shows a file %q; see fermata files %s", session, named, session)
	case 1:
		return found, nil
	}
	return found, agent.Errorf(agent.CodeInvalidInput, "several files of session %s are %q: name one by its digest, %s", session, named, strings.Join(digests, ", "))
}

// saveFile writes a file's bytes to where they were asked for.
func (c *cli) saveFile(o filesOrder, f fermata.SessionFile, data []byte) error {
	return c.writeFile(o.output, data, fileLine{agent.Version, f, o.output}, f.String())
}

// writeFile writes bytes from a session to a file, and says so in JSON or in words, or to standard output.
func (c *cli) writeFile(output string, data []byte, line any, what string) error {
	switch {
	case output != "-":
		if err := replaceFile(output, func(w io.Writer) error { _, err := w.Write(data); return err }); err != nil {
			return err
		}
		if c.JSON {
			c.Line(line)
			return nil
		}
		c.Print("%s: %s", output, untrusted.Line(what, 400))
		return nil
	case !c.Out.Terminal():
		plain := c.Out.Exact()
		_, err := plain.Write(data)
		return errors.Join(err, plain.Failed())
	}
	return agent.Errorf(agent.CodeInvalidInput, "standard output is a terminal, and the file could control it: pipe it to a program, or name a file with -o")
}

// mayWrite returns an error if a command may not write a file. Lstat also finds a broken link.
func mayWrite(path string, force bool) error {
	info, err := os.Lstat(path)
	switch {
	case path == "-" || errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return agent.Errorf(agent.CodeInvalidInput, "the file can't be written: %w", err)
	case !force:
		return agent.Errorf(agent.CodeInvalidInput, "%s exists already; name another file, or add --force", path)
	case !info.Mode().IsRegular(): // a rename would replace a device or a link
		return agent.Errorf(agent.CodeInvalidInput, "%s is not a regular file; name another file", path)
	}
	return nil
}
