package agent

// Profile names a set of defaults.
type Profile string

// The profiles: an agent that uses tools, one that looks things up, one that checks the
// work of others, and one that answers at once. The zero value means tool_using.
const (
	ProfileToolUsing  Profile = "tool_using"
	ProfileResearcher Profile = "researcher"
	ProfileVerifier   Profile = "verifier"
	ProfileCompleter  Profile = "completer"
)

type defaults struct{ turns, nudges, repairs int }

var profiles = map[Profile]defaults{
	ProfileToolUsing:  {50, 8, 1},
	ProfileResearcher: {30, 4, 1},
	ProfileVerifier:   {5, 0, 3},
	ProfileCompleter:  {1, 0, 3},
}
