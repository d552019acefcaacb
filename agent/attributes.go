package agent

// Names of the search attributes of every run (docs/wire.md §8). A namespace needs all of
// them before a worker starts: run `fermata setup` once.
const (
	AttrAgent    = "FermataAgent"    // Keyword: the agent's name
	AttrStatus   = "FermataStatus"   // Keyword: the run's status, without suspending
	AttrWaitsFor = "FermataWaitsFor" // KeywordList: the suspension's kind, then what it waits for
	AttrSince    = "FermataSince"    // Datetime: since when the run has this status
	AttrDeadline = "FermataDeadline" // Datetime: the earliest deadline of the open requests and conditions
)

// An AttributeType is Temporal's name for the type of a search attribute.
type AttributeType string

// The types of the search attributes.
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

// Attributes returns the search attributes that a namespace needs, in the order in which
// they are shown. A namespace on SQL has ten Keywords and three of each other type. These
// five are all that fermata uses.
func Attributes() []Attribute {
	return []Attribute{
		{AttrAgent, AttributeKeyword},
		{AttrStatus, AttributeKeyword},
		{AttrWaitsFor, AttributeKeywordList},
		{AttrSince, AttributeDatetime},
		{AttrDeadline, AttributeDatetime},
	}
}
