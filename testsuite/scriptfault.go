package testsuite

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/fermata-agents/fermata/agent"
)

// Messages of the YAML library for a value of the wrong type, and for an unknown key.
var (
	misfit  = regexp.MustCompile("^cannot construct (!!\\w+)(?: `(.*)`)? into (.+)$")
	unknown = regexp.MustCompile(`^field (.+) not found in type `)
)

// scriptFault describes the faults of a script line by line, in the words of the file.
func scriptFault(path string, err error) error {
	var many *yaml.LoadErrors
	var one *yaml.LoadError
	var list []*yaml.LoadError
	switch {
	case errors.As(err, &many):
		list = many.Errors
	case errors.As(err, &one):
		list = []*yaml.LoadError{one}
	}
	var texts []string
	for _, e := range list {
		// Some errors have no line.
		texts = append(texts, fmt.Sprintf("script %s:%d: %s", path, max(1, e.Mark.Line), inWords(e.Message)))
	}
	if len(texts) == 0 {
		return agent.Errorf(agent.CodeInvalidInput, "script %s: %w", path, err)
	}
	return agent.Errorf(agent.CodeInvalidInput, "%s", strings.Join(texts, "; "))
}

func inWords(message string) string {
	if parts := unknown.FindStringSubmatch(message); parts != nil {
		return fmt.Sprintf("%q is not known here", parts[1])
	}
	parts := misfit.FindStringSubmatch(message)
	if parts == nil {
		return "not YAML: " + strings.TrimPrefix(message, "yaml: ")
	}
	is := map[string]string{"!!map": "fields", "!!seq": "a list", "!!null": "nothing"}[parts[1]]
	if is == "" {
		is = fmt.Sprintf("%q", parts[2])
	}
	return fmt.Sprintf("must be %s, not %s", formOf(parts[3]), is)
}

// formOf describes the values of a Go type, in the words of the file.
func formOf(kind string) string {
	switch {
	case strings.HasPrefix(kind, "[]"):
		return "a list"
	case kind == "string", strings.HasSuffix(kind, "Kind"):
		return "a text"
	case kind == "bool":
		return "true or false"
	case strings.HasSuffix(kind, "Duration"):
		return "a time such as 90s"
	case strings.Contains(kind, "int"), strings.Contains(kind, "float"):
		return "a number"
	}
	return "a value with fields of its own"
}
