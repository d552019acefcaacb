package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// compose is what is read of docker-compose.yml.
type compose struct {
	Services map[string]service
	Configs  map[string]struct{ Content string }
}

// service is one of its services.
type service struct {
	Image       string
	Environment map[string]string
	Command     []string
}

func readCompose(path string) (*compose, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var c compose
	if err := yaml.Unmarshal(text, &c); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, name := range []string{"schema", "temporal", "namespace", "setup"} {
		if len(c.Services[name].Environment) == 0 {
			return nil, fmt.Errorf("%s: the service %s has no environment", path, name)
		}
	}
	return &c, nil
}

// version is that of its image.
func (s service) version() string {
	_, version, _ := strings.Cut(s.Image, ":")
	return "v" + version
}

// environ is this process's environment with that of the service, in which others
// stand for what is elsewhere here.
func (s service) environ(others map[string]string) []string {
	out := os.Environ()
	for _, set := range []map[string]string{s.Environment, others} {
		for _, name := range slices.Sorted(maps.Keys(set)) {
			out = append(out, name+"="+set[name])
		}
	}
	return out
}

// script is what the service's shell runs: a $ is written twice in the file.
func (s service) script() string { return strings.ReplaceAll(strings.Join(s.Command, "\n"), "$$", "$") }
