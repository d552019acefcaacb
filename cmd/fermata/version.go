package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func (c *cli) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print what this build is",
		Example: `  fermata version`,
		Args:    wants(0, "no argument"),
		RunE: func(*cobra.Command, []string) error {
			c.print("fermata %s", version())
			c.print("%s %s/%s, Temporal SDK %s, embedded server %s", runtime.Version(), runtime.GOOS, runtime.GOARCH,
				moduleVersion("go.temporal.io/sdk"), moduleVersion("go.temporal.io/server"))
			return nil
		},
	}
}

// version is that of the main module, with the commit where it is no release.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := cmp.Or(info.Main.Version, "(devel)")
	if v != "(devel)" {
		return v
	}
	set := map[string]string{}
	for _, s := range info.Settings {
		set[s.Key] = s.Value
	}
	if commit := set["vcs.revision"]; commit != "" {
		v = fmt.Sprintf("%s %.12s", v, commit)
	}
	if set["vcs.modified"] == "true" {
		v += " with changes"
	}
	return v
}

func moduleVersion(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == path {
				return m.Version
			}
		}
	}
	return "unknown"
}
