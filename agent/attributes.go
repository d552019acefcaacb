package agent

// Names of the search attributes that every run carries (docs/wire.md §8). A namespace
// must know all of them before a worker starts: see `fermata setup`.
const (
	AttrAgent    = "FermataAgent"    // Keyword: the agent's name
	AttrStatus   = "FermataStatus"   // Keyword: the run's status, without suspending
	AttrWaitsFor = "FermataWaitsFor" // KeywordList: the suspension's kind, then what it waits for
	AttrSince    = "FermataSince"    // Datetime: since when this status
	AttrDeadline = "FermataDeadline" // Datetime: the earliest deadline of what is open
)

// An AttributeType is Temporal's name for the type of a search attribute.
type AttributeType string

// The types that our search attributes have.
const (
	AttributeKeyword     AttributeType = "Keyword"
	AttributeKeywordList AttributeType = "KeywordList"
	AttributeDatetime    AttributeType = "Datetime"
)

// An Attribute is one search attribute that a namespace must have.
type Attribute struct {
	Name string
	Type AttributeType
}

// Attributes lists what a namespace must know, in the order in which it is shown.
// A namespace on SQL has room for ten Keywords and three of each other type:
// these are all that fermata takes.
func Attributes() []Attribute {
	return []Attribute{
		{AttrAgent, AttributeKeyword},
		{AttrStatus, AttributeKeyword},
		{AttrWaitsFor, AttributeKeywordList},
		{AttrSince, AttributeDatetime},
		{AttrDeadline, AttributeDatetime},
	}
}
