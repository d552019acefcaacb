package agentsfile

import (
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/roles"
)

// fillRole returns an agent with what its role fills in. faulty means that the author's own keys
// are wrong: then the whole is not checked, since it would report them again.
func (f *File) fillRole(c *checker, e entry, def agent.Definition, faulty bool) (agent.Definition, bool) {
	filled, err := roles.Fill(def, f.thinks(def.Model))
	if err != nil {
		names := roles.Names()
		c.add(agent.CodeInvalidInput, e.at("role"), "%s.role: there is no role %s; the roles are %s%s", e.path, quote(def.Role), strings.Join(names, ", "), meant(def.Role, names))
		return def, false
	}
	if !faulty {
		f.checkLater(c, e, filled)
	}
	return filled, true
}

// checkLater checks what only a role and the author's keys together can get wrong.
func (f *File) checkLater(c *checker, e entry, def agent.Definition) {
	if def.Role == "" {
		return
	}
	for _, err := range apart(def.Check()) {
		c.add(agent.CodeOf(err), e.at("role"), "%s.role: with role %s, %w", e.path, def.Role, err)
	}
}

// thinks reports whether a model is known to think. A model that does not exist is reported
// elsewhere.
func (f *File) thinks(name string) bool {
	provider, _, _ := strings.Cut(name, "/")
	return (f.models[name] != nil || f.models[provider] != nil) && len(f.info(name).Reasoning) > 0
}
