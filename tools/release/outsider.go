package main

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
)

// outside is a test in somebody else's module, which runs an agent.
//
//go:embed testdata/outsider_test.go
var outside []byte

// outsider tests a module that requires our version from the proxy.
func (r *release) outsider() error {
	env, err := r.environment("somebody")
	if err != nil {
		return err
	}
	dir := filepath.Join(r.gopath("somebody"), "theirs")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root := r.modules[0]
	gomod := fmt.Sprintf("module theirs.example/agents\n\ngo %s\n\nrequire (\n\t%s %s\n\t%s/provider/openai %s\n)\n", root.file.Go.Version, root.path, r.version, root.path, r.version)
	for name, data := range map[string][]byte{"go.mod": []byte(gomod), "outsider_test.go": outside} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	if _, err := command(dir, env, "go", "mod", "tidy"); err != nil {
		return err
	}
	said, err := command(dir, env, "go", "test", "-trimpath", ".")
	fmt.Println(said)
	return err
}
