package durable

import (
	"encoding/json"
	"regexp"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/fermata-agents/fermata/agent"
)

// Topics are in a search attribute, which cannot be encrypted. A model may have chosen
// them. So with keys, the attribute and the queries for it have a keyed hash instead.

// topicOf begins a topic in the search attribute, and hashed a hashed topic.
const (
	topicOf = "topic:"
	hashed  = topicOf + "~"
)

// hashedForm matches a topic that is hashed already, as in a request that is retried.
var hashedForm = regexp.MustCompile(`^topic:~[0-9a-f]{32}$`)

// topics returns the forms of a topic. The first is written; listings search for all: one
// for each key, and the plain one if plain topics may have been written.
func (c Codec) topics(value string) (forms []string) {
	if hashedForm.MatchString(value) {
		return []string{value}
	}
	for _, mark := range c.Keyring.Hashes("topic", strings.TrimPrefix(value, topicOf)) {
		forms = append(forms, hashed+mark)
	}
	if !c.PlainUntil.IsZero() {
		forms = append(forms, value)
	}
	return forms
}

// hide hashes the topics in a request: in a run's search attributes, and in the query of
// a listing.
func (c Codec) hide(request any) {
	switch r := request.(type) {
	case *workflowservice.RespondWorkflowTaskCompletedRequest:
		for _, one := range r.GetCommands() {
			c.hideIn(one.GetUpsertWorkflowSearchAttributesCommandAttributes().GetSearchAttributes())
		}
	case *workflowservice.ListWorkflowExecutionsRequest:
		r.Query = c.hideInQuery(r.GetQuery())
	case *workflowservice.CountWorkflowExecutionsRequest:
		r.Query = c.hideInQuery(r.GetQuery())
	}
}

func (c Codec) hideIn(attributes *commonpb.SearchAttributes) {
	p := attributes.GetIndexedFields()[agent.AttrWaitsFor]
	var list []string
	if json.Unmarshal(p.GetData(), &list) != nil {
		return // the attribute is unset
	}
	for i, what := range list {
		if strings.HasPrefix(what, topicOf) {
			list[i] = c.topics(what)[0]
		}
	}
	if data, err := json.Marshal(list); err == nil {
		p.Data = data
	}
}

// topicTerm matches a condition on a topic, and topicText a topic in a list, in
// Temporal's list filter language.
var (
	topicTerm = regexp.MustCompile(`\s*(!?=)\s*('topic:(?:[^']|'')+'|"topic:[^"]+")`)
	topicText = regexp.MustCompile(`'topic:(?:[^']|'')+'|"topic:[^"]+"`)
)

func (c Codec) hideInQuery(query string) string {
	if !strings.Contains(query, topicOf) {
		return query
	}
	query = topicTerm.ReplaceAllStringFunc(query, func(term string) string {
		found := topicTerm.FindStringSubmatch(term)
		// One topic has a form for each key, so a comparison becomes a list.
		forms, in := c.quoted(found[2]), "IN"
		if found[1] == "!=" {
			in = "NOT IN"
		}
		if !strings.Contains(forms, ",") {
			return " " + found[1] + " " + forms
		}
		return " " + in + " (" + forms + ")"
	})
	return topicText.ReplaceAllStringFunc(query, c.quoted)
}

// quoted returns the forms of a topic that is quoted in a query, as a list of values.
func (c Codec) quoted(text string) string {
	value := text[1 : len(text)-1]
	if text[0] == '\'' {
		value = strings.ReplaceAll(value, "''", "'")
	}
	var list []string
	for _, form := range c.topics(value) {
		list = append(list, "'"+strings.ReplaceAll(form, "'", "''")+"'")
	}
	return strings.Join(list, ", ")
}
