package durable

import (
	"encoding/json"
	"regexp"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/fermata-agents/fermata/agent"
)

// Topics stand in a search attribute, which has to be plain. A model may have chosen them, so
// with keys they are a keyed hash there, and in the queries that find them.

// topicOf begins a topic in the search attribute, and hashed one that is hashed.
const (
	topicOf = "topic:"
	hashed  = topicOf + "~"
)

// hashedForm is a topic that is hashed already, as in a request that is tried again.
var hashedForm = regexp.MustCompile(`^topic:~[0-9a-f]{32}$`)

// topics are the forms of a topic by which listings find it, the first of which is written:
// one for each key, and the plain one where something plain may have been written.
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

// hide hashes the topics of a request: in what a run writes, and in what a listing looks for.
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
		return // it is unset
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

// topicTerm is a condition on a topic, and topicText a topic in a list of values, in
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

// quoted are the forms of a topic that is quoted in a query, as a list of values.
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
