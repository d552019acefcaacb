package main

import (
	"errors"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/fermata-agents/fermata/agent"
)

// days is a flag with a time that may be in days, as agents files and listings have it.
type days struct{ to *time.Duration }

// Set implements [pflag.Value].
func (d days) Set(s string) error {
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

// String implements [pflag.Value]: the default; nothing is none.
func (d days) String() string {
	if d.to == nil || *d.to == 0 {
		return ""
	}
	return agent.Duration(*d.to).String()
}

// Type implements [pflag.Value].
func (d days) Type() string { return "duration" }

// olderFlag gives a command the flag --older.
func olderFlag(flags *pflag.FlagSet, to *time.Duration, help string) {
	flags.Var(days{to}, "older", help)
}
