package render

import (
	"errors"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// Faults lists the errors that an error consists of, each with its code. It leaves out an
// error that only wraps several, which say more. If several have no code they come from a
// library; the error around them says what they mean.
func Faults(err error) []*agent.Error {
	for at := err; at != nil; at = errors.Unwrap(at) {
		many, ok := at.(interface{ Unwrap() []error })
		if !ok || !slices.ContainsFunc(many.Unwrap(), coded) {
			continue
		}
		var list []*agent.Error
		for _, e := range many.Unwrap() {
			list = append(list, Faults(e)...)
		}
		return list
	}
	// An error without a code gets one from its kind.
	var e *agent.Error
	if !errors.As(err, &e) {
		e = &agent.Error{Code: agent.CodeOf(err)}
	}
	// A copy: the caller's error must keep its own message.
	whole := *e
	whole.Message = err.Error() // with the context of the errors around it
	return []*agent.Error{&whole}
}

// coded reports whether an error has a code.
func coded(err error) bool {
	var e *agent.Error
	return errors.As(err, &e)
}

// JoinFaults returns one error for several.
func JoinFaults(list []*agent.Error) *agent.Error {
	whole := *list[0]
	var texts []string
	for _, e := range list {
		texts = append(texts, e.Message)
	}
	whole.Message = strings.Join(texts, "\n")
	return &whole
}
