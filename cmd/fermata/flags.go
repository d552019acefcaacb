package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/files"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/secret"
)

// checkGiven refuses flags whose given value would mean the same as leaving them out, as of a variable
// that a script has not set: --session "" of emit would reach every session. A reason and a name may be
// blank: without them a hold is still a hold.
func checkGiven(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		d, other := flags.GetDuration(f.Name)
		if inDays, ok := f.Value.(days); ok { // GetDuration reads no days
			d, other = *inDays.to, nil
		}
		switch {
		case err != nil:
		case f.Value.Type() == "string" && strings.TrimSpace(f.Value.String()) == "" && f.Name != "reason" && f.Name != "by":
			err = agent.Errorf(agent.CodeInvalidInput, "--%s is blank; leave it out instead", f.Name)
		case other == nil && d <= 0:
			err = agent.Errorf(agent.CodeInvalidInput, "--%s must be positive, not %s: %s", f.Name, d, f.Usage)
		case f.Name == "priority" && f.Value.String() == "0":
			err = badPriority(0)
		}
	})
	return err
}

// policyFlag adds the flag --policy to a command with a worker.
func (c *cli) policyFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.host.Policy, "policy", "", "file that says who may send which verb to runs (default "+env.Policy+")")
}

// byFlag adds the flag --by.
func (c *cli) byFlag(cmd *cobra.Command, by *string) {
	cmd.Flags().StringVar(by, "by", "", "your name, which is recorded but not verified (default your login name)")
}

// byOr returns the user's name, by default the login name.
func byOr(by string) string {
	if by == "" {
		return env.User()
	}
	return by
}

// tokenFlag adds the flag --token-file.
func (c *cli) tokenFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "token-file", "", "file with the token that proves who you are (see fermata token; default "+env.Token+")")
}

// maxTokenFile bounds a file with a token, in bytes. A token has at most 2,048.
const maxTokenFile = 4 << 10

// tokenOf returns the token in a file or, without one, in the environment. It is not in a
// flag, since other users of the machine see those.
func tokenOf(file string) (string, error) {
	if file == "" {
		return secret.Get(env.Token)
	}
	raw, err := files.Read(file, maxTokenFile)
	if err != nil {
		return "", agent.Errorf(agent.CodeInvalidInput, "the token can't be read: %w", err)
	}
	// Editors and echo add a line break.
	token := strings.TrimSpace(string(raw))
	if token == "" {
		return "", agent.Errorf(agent.CodeInvalidInput, "--token-file %s is empty: fermata token wrote nothing into it; see its error message", file)
	}
	return token, nil
}

// jsonFlag adds the flag --json.
func (c *cli) jsonFlag(cmd *cobra.Command, help string) {
	cmd.Flags().BoolVar(&c.JSON, "json", false, help)
}

// exactArgs checks the number of a command's arguments.
func exactArgs(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return fmt.Errorf("%s needs %s, and got %s", cmd.CommandPath(), what, counted(len(args), "argument"))
	}
}

func counted(n int, thing string) string {
	switch n {
	case 0:
		return "none"
	case 1:
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// days is a flag with a time that may be in days, as in agents files and listings.
type days struct{ to *time.Duration }

// Set implements [pflag.Value].
func (d days) Set(s string) error {
	// agent.Duration also reads days, which time.ParseDuration does not.
	v := agent.Duration(0)
	if err := v.UnmarshalText([]byte(strings.TrimSpace(s))); err != nil {
		return err
	}
	if v < 0 {
		return errors.New("it is negative")
	}
	*d.to = time.Duration(v)
	return nil
}

// String implements [pflag.Value]. It returns the default; nothing means none.
func (d days) String() string {
	if d.to == nil || *d.to == 0 {
		return ""
	}
	return agent.Duration(*d.to).String()
}

// Type implements [pflag.Value].
func (d days) Type() string { return "duration" }

// olderFlag adds the flag --older.
func olderFlag(flags *pflag.FlagSet, to *time.Duration, help string) {
	flags.Var(days{to}, "older", help)
}

// agentsFile loads the named agents file, or the one in the working directory; nil if
// none is named and none is there.
func agentsFile(ctx context.Context, path string) (*agentsfile.File, error) {
	if path == "" {
		path = agentsfile.DefaultName
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
	}
	return agentsfile.Load(ctx, path)
}

// noAgents returns an error that says what to write if there is no agents file.
func noAgents() error {
	return agent.Errorf(agent.CodeInvalidInput, "there is no agents file: write %s, such as \"agents: {reviewer: {model: anthropic/claude-sonnet-5, instructions: You review code., tools: [fs_read, fs_grep]}}\", or name one with --agents", agentsfile.DefaultName)
}

// textOf returns a text from an argument, or from standard input for "-".
func (c *cli) textOf(text, what string) (string, error) {
	if text == "-" {
		// One byte more than allowed, to notice a longer text.
		all, err := io.ReadAll(io.LimitReader(c.in, agent.MaxPayload+1))
		if err != nil {
			return "", agent.Errorf(agent.CodeInvalidInput, "reading %s from standard input: %w", what, err)
		}
		text = string(all)
	}
	switch {
	// An empty pipe is almost always a mistake of the command before it.
	case strings.TrimSpace(text) == "":
		return "", agent.Errorf(agent.CodeInvalidInput, "%s is blank; say what to do", what)
	case len(text) > agent.MaxPayload:
		return "", agent.Errorf(agent.CodeTooLarge, "%s has more than %d bytes", what, agent.MaxPayload)
	}
	return text, nil
}
