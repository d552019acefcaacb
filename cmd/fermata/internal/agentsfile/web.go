package agentsfile

import (
	"slices"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/tool/web"
)

// webEntry is what the tool web_fetch may fetch. Without hosts and private, nothing.
type webEntry struct {
	// Hosts are the hosts that may be fetched at public addresses: docs.example.com,
	// "*.example.com" for all names below it, "*" for every name, with or without a port.
	Hosts []string `json:"hosts"`
	// Private are hosts that may be fetched at private addresses too; this machine is named
	// as localhost or by its address.
	Private []string `json:"private"`
	// Robots obeys the robots.txt of hosts.
	Robots *bool `json:"robots" default:"true"`
	// Proxy sends requests through the proxy of the worker's environment (HTTPS_PROXY), which
	// then has to refuse private addresses itself.
	Proxy bool `json:"proxy"`
}

func (e webEntry) options() *web.Options {
	return &web.Options{Hosts: e.Hosts, Private: e.Private, IgnoreRobots: e.Robots != nil && !*e.Robots, Proxy: e.Proxy}
}

func (f *File) readWeb(c *checker, part entry) {
	if part.value == nil {
		return
	}
	var ok bool
	// Without hosts it is wrong only if an agent has the tool.
	if f.web, ok = decode[webEntry](c, part, "web"); !ok || len(f.web.Hosts)+len(f.web.Private) == 0 {
		return
	}
	if _, err := web.New(f.web.options()); err != nil {
		c.add(agent.CodeInvalidInput, part.key, "web: %w", err)
	}
}

// checkWeb returns why a tool that fetches could fetch nothing; nil for other tools. as
// begins the sentence.
func (f *File) checkWeb(name, as string) error {
	if name != web.FetchTool || len(f.web.Hosts)+len(f.web.Private) > 0 {
		return nil
	}
	return agent.Errorf(agent.CodeInvalidInput, "%s may fetch nothing: name hosts under web at the top of the file, such as web: {hosts: [docs.example.com]}", as)
}

// openWeb makes the tool web_fetch if some agent or flow has it.
func (k *Kit) openWeb() error {
	if !slices.ContainsFunc(k.file.Definitions(), func(def agent.Definition) bool { return slices.Contains(def.Tools, web.FetchTool) }) {
		return nil
	}
	w, err := web.New(k.file.web.options())
	if err != nil {
		return err
	}
	k.open = append(k.open, w)
	k.Tools = append(k.Tools, w.Tool())
	return nil
}
