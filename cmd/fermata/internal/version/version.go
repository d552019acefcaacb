package version

import (
	"cmp"
	"fmt"
	"runtime/debug"
)

// Program returns the version of the main module, with the commit if it is not a release.
func Program() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := cmp.Or(info.Main.Version, "(devel)")
	// A module that was installed with a version needs no commit.
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

// Module returns the version of a module that this program is built with.
func Module(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == path {
				return m.Version
			}
		}
	}
	return "unknown"
}
