package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// compose is the part of docker-compose.yml that is read.
type compose struct {
	Services map[string]service
	Configs  map[string]struct{ Content string }
}

// service is a service in it.
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

// version returns the version in its image's tag.
func (s service) version() string {
	_, version, _ := strings.Cut(s.Image, ":")
	return "v" + version
}

// environ returns this process's environment with the service's. others replaces values
// that differ here.
func (s service) environ(others map[string]string) []string {
	out := os.Environ()
	for _, set := range []map[string]string{s.Environment, others} {
		for _, name := range slices.Sorted(maps.Keys(set)) {
			out = append(out, name+"="+set[name])
		}
	}
	return out
}

// script returns the service's shell script. The file writes a $ twice.
func (s service) script() string { return strings.ReplaceAll(strings.Join(s.Command, "\n"), "$$", "$") }
