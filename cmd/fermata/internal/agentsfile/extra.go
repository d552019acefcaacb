package agentsfile

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/tool/mcp"
)

// extra is what an entry adds to requests.
type extra struct {
	model.Extra
	variables, missing []string // the variables that it names, and those that are not set
}

var (
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	reference    = regexp.MustCompile(`\$\{([^}]*)\}`)
	// Headers and fields that usually hold secrets, by whole words: "x-portkey-provider"
	// and "max_tokens" hold none.
	secretHeader = regexp.MustCompile(`(?i)(^|[_-])(auth|authorization|(api)?key|token|secret|password)($|[_-])`)
	secretField  = regexp.MustCompile(`(?i)^(.*[_-])?(api_?key|authorization|secret|password|token)$`)
)

// extra fills in the variables of headers and body.
func (e modelEntry) extra() (extra, error) {
	// Sorted, so the first error is the same each time.
	x := extra{Extra: model.Extra{Headers: map[string]string{}}}
	for _, name := range slices.Sorted(maps.Keys(e.Headers)) {
		value, err := x.fill("headers."+name, e.Headers[name], secretHeader.MatchString(name))
		if err != nil {
			return x, err
		}
		x.Headers[name] = value
	}
	if len(e.Body) == 0 {
		return x, nil
	}
	// Numbers stay as they are written: a float would change large integers.
	d := json.NewDecoder(bytes.NewReader(e.Body))
	d.UseNumber()
	if err := d.Decode(&x.Body); err != nil {
		return x, agent.Errorf(agent.CodeInvalidInput, "body needs fields, such as {top_k: 40}").WithPath("body")
	}
	_, err := x.fillAll("body", x.Body)
	return x, err
}

// fillAll fills in all texts of a value.
func (x *extra) fillAll(at string, value any) (any, error) {
	var err error
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			text, isText := v[name].(string)
			if isText {
				v[name], err = x.fill(at+"."+name, text, secretField.MatchString(name))
			} else {
				v[name], err = x.fillAll(at+"."+name, v[name])
			}
			if err != nil {
				return nil, err
			}
		}
	case []any:
		for i := range v {
			if v[i], err = x.fillAll(fmt.Sprintf("%s[%d]", at, i), v[i]); err != nil {
				return nil, err
			}
		}
	case string:
		return x.fill(at, v, false)
	}
	return value, err
}

// fill fills in a text. A text with a secret's name must be a variable.
func (x *extra) fill(at, text string, secret bool) (string, error) {
	// A fixed prefix such as "Bearer" may stand beside the variable.
	names := mcp.Variables(text)
	if secret && len(names) == 0 {
		return "", agent.Errorf(agent.CodeInvalidInput, "%s looks like a secret: write a variable of the environment, as ${NAME}", at).WithPath(at)
	}
	for _, name := range names {
		if !variableName.MatchString(name) {
			return "", agent.Errorf(agent.CodeInvalidInput, "%s names the variable %s, which can't be one", at, quote(name)).WithPath(at)
		}
		if workersOwn(name) {
			return "", agent.Errorf(agent.CodeInvalidInput, "%s names %s, %s", at, name, isWorkersOwn).WithPath(at)
		}
		if err := secretFault(name); err != nil {
			return "", agent.Errorf(agent.CodeInvalidInput, "%s: %w", at, err).WithPath(at)
		}
		value := variable(name)
		if !slices.Contains(x.variables, name) {
			x.variables = append(x.variables, name)
			if value == "" {
				x.missing = append(x.missing, name)
			}
		}
		// Adapters remove these values from errors and logs.
		if value != "" {
			x.Secrets = append(x.Secrets, value)
		}
	}
	// Values are checked above, so an empty one is a missing variable.
	return reference.ReplaceAllStringFunc(text, func(ref string) string { return variable(ref[2 : len(ref)-1]) }), nil
}

// unset is a model whose headers or body name a variable that is not set.
type unset struct {
	model.Model
	name, env string
}

// Generate fails with an auth fault. A missing variable of one model must not keep the
// worker's other models from working.
func (u unset) Generate(context.Context, *model.Request, func(model.Delta)) (*model.Reply, error) {
	return nil, model.Fault(agent.FaultAuth, 0, 0, fmt.Sprintf("%s was not called: set %s, which its headers or body name, in the worker's environment", u.name, u.env))
}
