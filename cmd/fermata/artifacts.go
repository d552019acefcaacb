package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

// artifactsOrder is what to list or save, and where.
type artifactsOrder struct {
	session, name, output string
	version               int
	force                 bool
}

func (c *cli) artifactsCommand() *cobra.Command {
	var o artifactsOrder
	cmd := &cobra.Command{
		Use:   "artifacts SESSION [NAME]",
		Short: "List the artifacts of a session, or save one",
		Long: `Artifacts lists the named results that the runs of a session have saved, each version,
from the session's log. A * marks the current version: the last one that the session's
runs know. With NAME and -o it saves the current version, or the one that --version
names. Only you can read the file that it writes.

The command needs the workers' store. Without a live run no server is needed. A
sub-agent's artifacts are in its own session; the outcome of a run names them.`,
		Example: `  fermata artifacts invoice-118
  fermata artifacts invoice-118 report.md -o report.md
  fermata artifacts invoice-118 report.md --version 1 -o - | less
  fermata artifacts invoice-118 --json | jq -r 'select(.current).name'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return nil
			}
			return exactArgs(1, "a session, and an artifact at most")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.session = args[0]
			if len(args) == 2 {
				o.name = args[1]
			}
			return c.artifacts(cmd.Context(), o, len(args) == 2, cmd.Flags().Changed("version"))
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "", "where to save NAME; - is standard output")
	f.IntVar(&o.version, "version", 0, "the version to save (default the current one)")
	f.BoolVar(&o.force, "force", false, "replace the file that is there")
	c.jsonFlag(cmd, "print each version, or the saved one, as a line of JSON")
	return cmd
}

// artifactLine is the output of artifacts --json.
type artifactLine struct {
	V int `json:"v"`
	fermata.SessionArtifact
	// Output is where the artifact was saved.
	Output string `json:"output,omitempty"`
}

func (c *cli) artifacts(ctx context.Context, o artifactsOrder, one, versioned bool) error {
	switch {
	case !one && (o.output != "" || o.force || versioned):
		return agent.Errorf(agent.CodeInvalidInput, "-o, --version and --force are for one artifact: name it after the session")
	case !one:
		return c.ReadLog(ctx, o.session, func(runs *fermata.Client) error { return c.listArtifacts(ctx, runs, o.session) })
	case versioned && o.version < 1:
		return agent.Errorf(agent.CodeInvalidInput, "--version counts from 1; leave it out for the current version")
	case o.output == "":
		return agent.Errorf(agent.CodeInvalidInput, "name the file to write with -o; -o - writes to standard output")
	case o.output == "-" && c.JSON:
		return agent.Errorf(agent.CodeInvalidInput, "-o - and --json exclude each other: both write to standard output")
	}
	if err := agent.CheckArtifactName(o.name); err != nil {
		return err
	}
	if err := mayWrite(o.output, o.force); err != nil {
		return err
	}
	return c.ReadLog(ctx, o.session, func(runs *fermata.Client) error {
		found, err := findArtifact(ctx, runs, o)
		if err != nil {
			return err
		}
		data, err := runs.File(ctx, &found.File)
		if err != nil {
			return err
		}
		return c.writeFile(o.output, data, artifactLine{agent.Version, found, o.output}, found.Artifact.String())
	})
}

func (c *cli) listArtifacts(ctx context.Context, runs *fermata.Client, session string) error {
	all, err := everyOf(runs.Artifacts(ctx, session))
	if err != nil {
		return err
	}
	t := c.Table()
	defer t.Flush()
	for i, a := range all {
		switch {
		case c.JSON:
			c.Line(artifactLine{V: agent.Version, SessionArtifact: a})
		default:
			if i == 0 {
				t.Row("NAME", "VERSION", "TURN", "CALL", "AGENT", "DIGEST", "BYTES", "TYPE")
			}
			version := fmt.Sprint(a.Version)
			if a.Current {
				version += " *"
			}
			t.Row(untrusted.Name(a.Name), version, a.Turn, untrusted.Name(a.Call), untrusted.Name(a.Agent), shortDigest(a.Digest), a.Size, untrusted.Name(a.MediaType))
		}
	}
	if len(all) == 0 {
		c.Note("session %s has no artifacts", session)
	}
	return nil
}

// findArtifact returns the current version of an artifact, or the one that was named. After a fork from
// another session, a version may be there twice: then the last one counts.
func findArtifact(ctx context.Context, runs *fermata.Client, o artifactsOrder) (found fermata.SessionArtifact, err error) {
	var versions []string
	for a, err := range runs.Artifacts(ctx, o.session) {
		if err != nil {
			return found, err
		}
		if a.Name != o.name {
			continue
		}
		versions = append(versions, fmt.Sprint(a.Version))
		if o.version == 0 && a.Current || a.Version == o.version {
			found = a
		}
	}
	switch {
	case found.Version > 0:
		return found, nil
	case len(versions) == 0:
		return found, agent.Errorf(agent.CodeNotFound, "session %s has no artifact %q; see fermata artifacts %s", o.session, o.name, o.session)
	}
	const most = 20
	if n := len(versions) - most; n > 0 {
		versions = versions[n:]
	}
	if o.version == 0 {
		return found, agent.Errorf(agent.CodeNotFound, "the last run of session %s began without %q: name a version with --version (%s)", o.session, o.name, strings.Join(versions, ", "))
	}
	return found, agent.Errorf(agent.CodeNotFound, "artifact %q of session %s has no version %d; it has %s", o.name, o.session, o.version, strings.Join(versions, ", "))
}
