package loop

import (
	"go/types"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// beside are the fields that an effect of an activity has beside its arguments: the shell reads them, and
// the activity does not get them.
var beside = map[string][]string{
	"CallModel": {"Seq"}, "CallTool": {"Estimate", "Local", "Temporal"}, "AskFlow": {"AskSeq", "Regular"}, "Seal": {"To", "Local", "Report"}, "Look": {"N"},
}

// withoutArgs are the effects that the workflow itself performs.
var withoutArgs = []string{
	"CancelCall", "CancelInFlight", "SetTimer", "Broadcast", "AwaitInFlight", "MakeHandoff", "StartChild", "OrderChild", "ReportToParent", "GrantChild",
	"ForwardCommand", "CheckChild", "CheckParent", "Acknowledge", "TakeSignals", "Publish", "ContinueAsNew", "Complete",
}

// The effect of an activity has its arguments in one struct, which is the activity's input too. A field
// beside it would be lost on the way.
func TestAnEffectHasItsActivitysArguments(t *testing.T) {
	scope := typed(t).pkg.Scope()
	effect := scope.Lookup("Effect").Type().Underlying().(*types.Interface)
	seen := 0
	for _, name := range scope.Names() {
		object, ok := scope.Lookup(name).(*types.TypeName)
		if !ok || name == "Effect" || !types.Implements(object.Type(), effect) {
			continue
		}
		seen++
		args, others := 0, []string{}
		for f := range object.Type().Underlying().(*types.Struct).Fields() {
			if f.Embedded() && strings.HasSuffix(f.Name(), "Args") {
				args++
			} else {
				others = append(others, f.Name())
			}
		}
		if slices.Contains(withoutArgs, name) {
			require.Zero(t, args, name)
			continue
		}
		require.Equal(t, 1, args, "%s is performed by an activity, and has its arguments in one struct", name)
		require.ElementsMatch(t, beside[name], others, "what %s has beside the activity's arguments", name)
	}
	require.Equal(t, len(withoutArgs)+12, seen, "effects")
}
