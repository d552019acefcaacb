package main

import (
	"runtime"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/version"
)

func (c *cli) versionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long:  "Version prints the versions of this program, of Go and of Temporal.",
		Example: `  fermata version
  fermata version --json | jq -r .version`,
		Args: exactArgs(0, "no argument"),
		RunE: func(*cobra.Command, []string) error {
			l := versionLine{
				V: agent.Version, Version: version.Program(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
				SDK: version.Module("go.temporal.io/sdk"), Server: version.Module("go.temporal.io/server"),
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
	c.jsonFlag(cmd, "print the versions as one line of JSON")
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
