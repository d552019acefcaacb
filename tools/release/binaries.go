package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// platforms are the platforms for which a release has the command.
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

// host is the platform of this machine.
const host = runtime.GOOS + "/" + runtime.GOARCH

// binaries installs the command from the proxy as everybody can. It does so twice, and
// keeps the binary if both are equal.
func (r *release) binaries() error {
	wanted := platforms
	if r.quick {
		wanted = []string{host}
	}
	var sums, binaries []string
	var subjects []resource
	for _, platform := range wanted {
		name := fmt.Sprintf("fermata_%s_%s", r.version, strings.ReplaceAll(platform, "/", "_"))
		if strings.HasPrefix(platform, "windows/") {
			name += ".exe"
		}
		bill := strings.TrimSuffix(name, ".exe") + ".cdx.json"
		if err := r.binary(platform, name); err != nil {
			return err
		}
		if err := r.writeBill(name, bill); err != nil {
			return err
		}
		binaries = append(binaries, name)
		for _, made := range []string{name, bill} {
			sum, err := digest(filepath.Join(r.out, made))
			if err != nil {
				return err
			}
			sums = append(sums, fmt.Sprintf("%x  %s\n", sum, made))
			subjects = append(subjects, resource{Name: made, Digest: map[string]string{"sha256": fmt.Sprintf("%x", sum)}})
		}
	}
	parts, err := r.partsOf(binaries)
	if err != nil {
		return err
	}
	if err := r.writeProvenance(subjects, parts); err != nil {
		return err
	}
	// The provenance is signed with the rest, through its digest.
	sum, err := digest(filepath.Join(r.out, provenance))
	if err != nil {
		return err
	}
	sums = append(sums, fmt.Sprintf("%x  %s\n", sum, provenance))
	slices.SortFunc(sums, func(a, b string) int { return strings.Compare(a[64:], b[64:]) })
	if err := os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(strings.Join(sums, "")), 0o644); err != nil {
		return err
	}
	return r.says()
}

// binary installs the command for a platform under a name.
func (r *release) binary(platform, name string) error {
	var made [2]string
	var sums [2][32]byte
	for i, turn := range []string{"first", "second"} {
		var err error
		if made[i], err = r.install(turn, platform); err != nil {
			return err
		}
		if sums[i], err = digest(made[i]); err != nil {
			return err
		}
	}
	if sums[0] != sums[1] {
		return fmt.Errorf("two builds for %s differ: compare %s and %s", platform, made[0], made[1])
	}
	fmt.Printf("%x  %s\n", sums[0], name)
	if err := os.Remove(made[1]); err != nil {
		return err
	}
	return os.Rename(made[0], filepath.Join(r.out, name))
}

// install does what docs/releasing.md describes for people who want to make a binary
// themselves, with a new GOPATH each time. It leaves out the debugger's tables, which are
// half of the binary.
func (r *release) install(turn, platform string) (string, error) {
	goos, goarch, _ := strings.Cut(platform, "/")
	name := turn + "-" + goos + "-" + goarch
	env, err := r.environment(name)
	if err != nil {
		return "", err
	}
	env = append(env, "GOOS="+goos, "GOARCH="+goarch)
	// Without a shared build cache: the second build must not just return the first one's
	// result.
	if turn == "second" && !r.quick {
		cache := filepath.Join(r.gopath(name), "build")
		defer os.RemoveAll(cache)
		env = append(env, "GOCACHE="+cache)
	}
	if _, err := command(r.out, env, "go", "install", "-trimpath", "-ldflags=-w", r.command()+"@"+r.version); err != nil {
		return "", err
	}
	made := "fermata"
	if goos == "windows" {
		made += ".exe"
	}
	if platform != host {
		made = goos + "_" + goarch + string(filepath.Separator) + made
	}
	return filepath.Join(r.gopath(name), "bin", made), nil
}

// command returns the path of the program.
func (r *release) command() string { return r.modules[0].path + "/cmd/fermata" }

// says runs the binary for this machine, and checks that it knows its version.
func (r *release) says() error {
	name := filepath.Join(r.out, fmt.Sprintf("fermata_%s_%s_%s", r.version, runtime.GOOS, runtime.GOARCH))
	said, err := command(r.out, nil, name, "version")
	if err != nil {
		return err
	}
	fmt.Println(said)
	if first, _, _ := strings.Cut(said, "\n"); first != "fermata "+r.version {
		return fmt.Errorf("%s calls itself %q", name, first)
	}
	return nil
}

func digest(path string) (sum [32]byte, err error) {
	file, err := os.Open(path)
	if err != nil {
		return sum, err
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := file.WriteTo(hash); err != nil {
		return sum, err
	}
	return [32]byte(hash.Sum(nil)), nil
}
