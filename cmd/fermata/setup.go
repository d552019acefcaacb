package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/await"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/worker"
)

// knownWithin is how long a server may take until it knows new search attributes.
const knownWithin = 30 * time.Second

func (c *cli) setupCommand() *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Add the search attributes to a namespace",
		Long: `Setup adds fermata's search attributes to the namespace. Run it once per namespace;
attributes that exist stay. --check only looks. On Temporal Cloud, where tcld adds
search attributes, setup prints the tcld commands.`,
		Example: `  fermata setup --address temporal.internal:7233 --namespace agents
  fermata setup --check`,
		Args: exactArgs(0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := c.Find(cmd.Context())
			if err != nil {
				return err
			}
			defer s.Close()
			return c.setup(cmd.Context(), s, check)
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "only look; the exit status is 5 if an attribute is missing")
	c.jsonFlag(cmd, "print what was missing and what was added as one line of JSON")
	return cmd
}

// setupLine is the output of setup --json.
type setupLine struct {
	V         int      `json:"v"`
	Namespace string   `json:"namespace"`
	Missing   []string `json:"missing"` // before the command
	Added     []string `json:"added"`
	// Commands add what this client may not add.
	Commands []string `json:"commands,omitempty"`
}

// printSetup shows what a namespace has now, as a line for programs or in words for
// people.
func (c *cli) printSetup(l setupLine, format string, args ...any) {
	// JSON has [] and not null for an empty list.
	if l.V = agent.Version; c.JSON {
		l.Missing, l.Added = append([]string{}, l.Missing...), append([]string{}, l.Added...)
		c.Line(l)
		return
	}
	c.Print(format, args...)
}

func (c *cli) setup(ctx context.Context, s *connect.Server, check bool) error {
	missing, err := worker.MissingAttributes(ctx, s.Client)
	if err != nil {
		return err
	}
	if len(missing) == 0 {
		c.printSetup(setupLine{Namespace: s.Namespace}, "namespace %s has all search attributes", s.Namespace)
		return nil
	}
	if check {
		if c.JSON {
			c.printSetup(setupLine{Namespace: s.Namespace, Missing: missing}, "")
		}
		return agent.Errorf(agent.CodeNotSetUp, "namespace %s lacks the search attributes %s: run fermata setup", s.Namespace, strings.Join(missing, ", "))
	}
	if err := addAttributes(ctx, s, missing); err != nil {
		return c.setupRefused(s, missing, err)
	}
	// The next command could fail because the server does not know the attributes yet.
	if err := awaitAttributes(ctx, s); err != nil {
		return err
	}
	c.printSetup(setupLine{Namespace: s.Namespace, Missing: missing, Added: missing}, "namespace %s: added %s", s.Namespace, strings.Join(missing, ", "))
	return nil
}

// addAttributes adds what the server does not have. It leaves alone what the server has
// but no query finds yet.
func addAttributes(ctx context.Context, s *connect.Server, missing []string) error {
	has, err := s.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: s.Namespace})
	if err != nil {
		return err
	}
	add := map[string]enums.IndexedValueType{}
	for _, a := range agent.Attributes() {
		want, err := enums.IndexedValueTypeFromString(string(a.Type))
		if err != nil {
			return err
		}
		// An attribute of another type can't be changed, only removed, which is the operator's
		// decision.
		switch is, ok := has.GetCustomAttributes()[a.Name]; {
		case ok && is != want:
			return agent.Errorf(agent.CodeNotSetUp, "namespace %s has the search attribute %s as %s, and fermata needs it as %s: remove it with temporal operator search-attribute remove --name %s, then run fermata setup again", s.Namespace, a.Name, is, a.Type, a.Name)
		case !ok && slices.Contains(missing, a.Name):
			add[a.Name] = want
		}
	}
	if len(add) == 0 {
		return nil
	}
	_, err = s.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{Namespace: s.Namespace, SearchAttributes: add})
	var exists *serviceerror.AlreadyExists
	if errors.As(err, &exists) {
		return nil // another setup added them at the same time
	}
	return err
}

// awaitAttributes waits until the server accepts the attributes. Some servers reload their tables
// only at intervals.
func awaitAttributes(ctx context.Context, s *connect.Server) error {
	ctx, cancel := context.WithTimeout(ctx, knownWithin)
	defer cancel()
	for {
		missing, err := worker.MissingAttributes(ctx, s.Client)
		if err == nil && len(missing) == 0 {
			return nil
		}
		if !await.Pause(ctx, 100*time.Millisecond) {
			return agent.Errorf(agent.CodeNotSetUp, "the search attributes were added, but the server does not know %s after %s: run fermata setup --check later", strings.Join(missing, ", "), knownWithin)
		}
	}
}

// setupRefused says what to do if the operator service is not allowed.
func (c *cli) setupRefused(s *connect.Server, missing []string, err error) error {
	var denied *serviceerror.PermissionDenied
	var unknown *serviceerror.Unimplemented
	if !errors.As(err, &denied) && !errors.As(err, &unknown) {
		// An error of ours already says what to do.
		var ours *agent.Error
		if errors.As(err, &ours) {
			return err
		}
		return fmt.Errorf("adding search attributes: %w", durable.FromRPC(err))
	}
	// Temporal Cloud has no operator service for clients, so its own tool adds them.
	c.Note("the server does not let this client add search attributes. On Temporal Cloud:")
	var commands []string
	for _, a := range agent.Attributes() {
		if slices.Contains(missing, a.Name) {
			commands = append(commands, fmt.Sprintf("tcld namespace search-attributes add --namespace %s --search-attribute \"%s=%s\"", s.Namespace, a.Name, a.Type))
		}
	}
	c.printSetup(setupLine{Namespace: s.Namespace, Missing: missing, Commands: commands}, "%s", untrusted.Block(strings.Join(commands, "\n")))
	return agent.Errorf(agent.CodeNotSetUp, "namespace %s lacks %s, and this client may not add them: %w", s.Namespace, strings.Join(missing, ", "), err)
}
