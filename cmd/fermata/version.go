package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
)

func (c *cli) versionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print what this build is",
		Example: `  fermata version
  fermata version --json | jq -r .version`,
		Args: wants(0, "no argument"),
		RunE: func(*cobra.Command, []string) error {
			l := versionLine{
				V: agent.Version, Version: version(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
				SDK: moduleVersion("go.temporal.io/sdk"), Server: moduleVersion("go.temporal.io/server"),
			}
			if c.JSON {
				c.Line(l)
				return nil
			}
			c.Print("fermata %s", l.Version)
			c.Print("%s %s, Temporal SDK %s, embedded server %s", l.Go, l.Platform, l.SDK, l.Server)
			return nil
		},
	}
	c.jsonFlag(cmd, "print it as one line of JSON")
	return cmd
}

// versionLine is the output of version --json.
type versionLine struct {
	V        int    `json:"v"`
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	SDK      string `json:"temporal_sdk"`
	Server   string `json:"embedded_server"`
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
