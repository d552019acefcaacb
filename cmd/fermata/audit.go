package main

import (
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/audit"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/files"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/render"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

// maxKeyFile bounds a file with a key in PEM, in bytes.
const maxKeyFile = 16 << 10

func (c *cli) auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Verify the audit log",
		Long: `Audit verifies the audit log: the signed record of who did what. Workers write it
where ` + env.Audit + ` names a file.`,
		Example: `  fermata audit verify audit.jsonl --public-key audit.pub`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(c.auditVerifyCommand())
	return cmd
}

func (c *cli) auditVerifyCommand() *cobra.Command {
	var publicKey string
	var heads []string
	cmd := &cobra.Command{
		Use:   "verify FILE",
		Short: "Verify that an audit log is complete and unchanged",
		Long: `Verify reads an audit log to its end. It checks that every entry is signed, and that
none is missing, changed, repeated or moved. It needs the public key and no server.

It prints the log's head. Keep the head where the workers can't write. With --head,
verify proves that the log still has all entries up to that head. Without --head, it
finds a cut only if a process started, did not end, and wrote nothing for 20 minutes.
The exit status is then 1.`,
		Example: `  fermata audit verify audit.jsonl --public-key audit.pub
  fermata audit verify audit.jsonl --public-key audit.pub --json | jq -r .head`,
		Args: exactArgs(1, "the audit's file"),
		RunE: func(_ *cobra.Command, args []string) error { return c.verifyAudit(args[0], publicKey, heads) },
	}
	cmd.Flags().StringVar(&publicKey, "public-key", "", "file with the public key (openssl pkey -in audit.key -pubout)")
	cmd.Flags().StringArrayVar(&heads, "head", nil, "a head that you kept, N:SHA256; the log must contain it")
	c.jsonFlag(cmd, "print the result as one line of JSON")
	return cmd
}

// auditLine is the output of audit verify --json.
type auditLine struct {
	V       int       `json:"v"`
	Entries int64     `json:"entries"`
	Head    string    `json:"head"`
	Begun   time.Time `json:"begun"`
	Last    time.Time `json:"last"`
	Open    int       `json:"open"`
	// Silent means that a process is open that has written nothing since Quiet, which is
	// too long.
	Silent bool      `json:"silent"`
	Quiet  time.Time `json:"quiet,omitzero"`
}

func (c *cli) verifyAudit(path, publicKey string, heads []string) error {
	if publicKey == "" {
		return agent.Errorf(agent.CodeInvalidInput, "--public-key is required: make the file with openssl pkey -in audit.key -pubout")
	}
	text, err := files.Read(publicKey, maxKeyFile)
	// Bounded: the path may name a device or a huge file by mistake.
	if err != nil {
		return agent.Errorf(agent.CodeInvalidInput, "the public key can't be read: %w", err)
	}
	key, err := audit.PublicKey(text)
	if err != nil {
		return agent.Errorf(agent.CodeInvalidInput, "the public key in %s: %w", publicKey, err)
	}
	var kept []audit.Head
	for _, one := range heads {
		h, err := audit.ParseHead(one)
		if err != nil {
			return err
		}
		kept = append(kept, h)
	}
	f, err := os.Open(path)
	if err != nil {
		return agent.Errorf(agent.CodeInvalidInput, "the audit can't be read: %w", err)
	}
	defer f.Close()
	// With a kept head, verify also notices that the end of the log was cut off.
	r, err := audit.Verify(f, key, kept...)
	if err != nil {
		return err
	}
	// A live process writes at every AliveInterval; twice that leaves room for a delay.
	found := auditLine{agent.Version, r.Entries, r.Head.String(), r.Begun, r.Last, r.Open, !r.Quiet.IsZero() && time.Since(r.Quiet) > 2*audit.AliveInterval, r.Quiet}
	if c.JSON {
		c.Line(found)
	} else {
		c.printAudit(found)
	}
	// The status is 1 because a script must notice a cut, even if all lines are valid.
	if found.Silent {
		return ended(1)
	}
	return nil
}

func (c *cli) printAudit(l auditLine) {
	t := c.Table()
	t.Field("whole", "%s", render.Count(int(l.Entries), "line"))
	if l.Entries > 0 {
		t.Field("from", "%s", render.Clock(l.Begun))
		t.Field("to", "%s", render.Clock(l.Last))
		t.Field("head", "%s", untrusted.Name(l.Head))
	}
	t.Field("open", "%s", render.Count(l.Open, "writer"))
	t.Flush()
	if l.Silent {
		c.Note("a process started and has written nothing since %s: it was killed, or the end of the log was cut off; after you have checked it, pass today's head with --head", render.Clock(l.Quiet))
	}
}
