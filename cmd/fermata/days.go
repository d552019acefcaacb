package main

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/fermata-agents/fermata/agent"
)

// days is a flag with a time that may be in days, as agents files and listings have it.
type days struct{ to *time.Duration }

// Set implements [pflag.Value].
func (d days) Set(s string) error {
	const day = 24 * time.Hour
	s = strings.TrimSpace(s)
	whole, rest, found := strings.Cut(s, "d")
	if s == "" {
		return errors.New("it is empty")
	}
	if !found {
		whole, rest = "0", s
	}
	n, err := strconv.ParseUint(whole, 10, 16)
	var v time.Duration
	if err == nil && rest != "" {
		v, err = time.ParseDuration(rest)
	}
	if err == nil && v < 0 {
		err = errors.New("it is negative")
	}
	*d.to = time.Duration(n)*day + v
	return err
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
