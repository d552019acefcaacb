package main

import (
	"fmt"
	"slices"
	"strings"
)

// dockerfile checks that images are pinned, and that only commits are built: a file that
// git does not track may be a key.
func dockerfile(path string, data []byte) (faults []string) {
	fault := func(line int, format string, args ...any) {
		faults = append(faults, fmt.Sprintf("%s:%d: %s", path, line, fmt.Sprintf(format, args...)))
	}
	stages, resets := []string{}, false
	for i, line := range strings.Split(string(data), "\n") {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		switch strings.ToUpper(words[0]) {
		case "FROM":
			if !pinned(words[1]) && !slices.Contains(stages, words[1]) {
				fault(i+1, "image %q: name a tag that stays, or a digest", words[1])
			}
			// A later FROM may name an earlier stage, which needs no digest.
			stages = append(stages, words[len(words)-1])
		case "ADD":
			fault(i+1, "ADD fetches and unpacks: use COPY")
		case "COPY":
			if !strings.HasPrefix(words[1], "--from=") && words[1] != ".git" {
				fault(i+1, "COPY %s: copy .git, and check its commit out", words[1])
			}
		}
		resets = resets || strings.Contains(line, "git reset --quiet --hard HEAD")
	}
	if !resets {
		fault(1, "nothing checks a commit out")
	}
	return faults
}

// dockerignore checks that a build's context lists what is allowed: the commits, without
// git's other files.
func dockerignore(path string, data []byte) (faults []string) {
	var rules []string
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			rules = append(rules, line)
		}
	}
	if len(rules) == 0 || rules[0] != "*" {
		faults = append(faults, path+": the first rule is no *: everything that lies about goes to the build")
	}
	for i, rule := range rules {
		if strings.HasPrefix(rule, "!") && rule != "!.git" {
			faults = append(faults, fmt.Sprintf("%s: %s lets in what git may not track", path, rule))
		}
		if rule == "!.git" && !slices.Contains(rules[i:], ".git/config") {
			faults = append(faults, path+": .git/config is let in, which may have a password")
		}
	}
	return faults
}
