package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: manifests FOLDER, the top of the tree")
		os.Exit(2)
	}
	faults, err := check(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, f := range faults {
		fmt.Println(f)
	}
	if len(faults) > 0 {
		os.Exit(1)
	}
}

// check returns the faults of all files below a folder. An error says that there was
// nothing to check.
func check(top string) (faults []string, err error) {
	for pattern, check := range map[string]func(path string, data []byte) []string{
		"docs/kubernetes/*.yaml": kubernetes,
		"docs/grafana/*.json":    grafana,
		"docker-compose.yml":     compose,
		"Dockerfile":             dockerfile,
		".dockerignore":          dockerignore,
	} {
		paths, err := filepath.Glob(filepath.Join(top, pattern))
		if err != nil {
			return nil, err
		}
		if len(paths) == 0 {
			return nil, fmt.Errorf("no file %s in %s: name the top of the tree", pattern, top)
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			faults = append(faults, check(path, data)...)
		}
	}
	return faults, nil
}
