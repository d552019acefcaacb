package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/sirupsen/logrus"
)

// compose checks a file for Docker Compose with Compose's own loader: the schema, the
// variables, and that named services and volumes exist.
func compose(path string, data []byte) (faults []string) {
	// The loader only logs what is merely odd, such as a variable without a value.
	var odd bytes.Buffer
	logrus.SetOutput(&odd)
	logrus.SetFormatter(&logrus.TextFormatter{DisableTimestamp: true})
	project, err := loader.LoadWithContext(context.Background(), types.ConfigDetails{
		WorkingDir:  filepath.Dir(path),
		ConfigFiles: []types.ConfigFile{{Filename: path, Content: data}},
	})
	if err != nil {
		return []string{fmt.Sprintf("%s: %v", path, err)}
	}
	for line := range strings.Lines(odd.String()) {
		faults = append(faults, fmt.Sprintf("%s: %s", path, strings.TrimSpace(line)))
	}
	for _, name := range slices.Sorted(maps.Keys(project.Services)) {
		for _, fault := range service(project, project.Services[name]) {
			faults = append(faults, fmt.Sprintf("%s: services.%s.%s", path, name, fault))
		}
	}
	return faults
}

func service(project *types.Project, s types.ServiceConfig) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if s.Build == nil && !pinned(s.Image) {
		fault("image %q: name a tag that stays, or a digest", s.Image)
	}
	if s.Build != nil {
		dockerfile := filepath.Join(s.Build.Context, s.Build.Dockerfile)
		if _, err := os.Stat(dockerfile); err != nil {
			fault("build: %v", err)
		}
	}
	for _, p := range s.Ports {
		if p.HostIP != "127.0.0.1" {
			fault("ports: %s is open to other machines: begin it with 127.0.0.1:", p.Published)
		}
	}
	for on, d := range s.DependsOn {
		check := project.Services[on].HealthCheck
		if d.Condition == types.ServiceConditionHealthy && (check == nil || check.Disable) {
			fault("depends_on: %s has no healthcheck", on)
		}
	}
	for _, v := range s.Volumes {
		if v.Type != types.VolumeTypeBind {
			continue
		}
		if _, err := os.Stat(v.Source); err != nil {
			fault("volumes: %v", err)
		}
	}
	return faults
}
