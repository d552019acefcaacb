package flow

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// checkAsk refuses a question whose choices could not be answers. The schema is that of the answer, empty
// for a text.
func checkAsk[Out any](question string, o *AskOptions, schema json.RawMessage) error {
	_, isBool := any(*new(Out)).(bool)
	switch {
	case isBool && len(o.Choices) > 0:
		return agent.Errorf(agent.CodeInvalidInput, "the question %.40q has choices, and its answer is a bool: leave Choices out for yes or no, or ask for a string", question)
	case isText[Out]() && len(o.Schema) > 0:
		return agent.Errorf(agent.CodeInvalidInput, "the question %.40q has a schema, and its answer is a string: name Choices alone, or ask for json.RawMessage", question)
	}
	if o.Default != "" {
		if _, err := accept[Out](o.Default, o); err != nil {
			return agent.Errorf(agent.CodeInvalidInput, "the question %.40q has the default %q, which can't be its answer: %w", question, o.Default, err)
		}
	}
	if len(schema) == 0 {
		return nil
	}
	for _, choice := range o.Choices {
		if why := model.Fits(schema, json.RawMessage(choice)); why != "" {
			return agent.Errorf(agent.CodeInvalidInput, "the question %.40q has the choice %q, which does not fit the schema of its answer: %s. Write choices as JSON, or ask for a string", question, choice, why)
		}
	}
	return nil
}

// accept reads an answer, and says why it can't be one. With choices it is one of them, as the author
// wrote it. The author's own default may be another.
func accept[Out any](text string, o *AskOptions) (out Out, err error) {
	if len(o.Choices) > 0 && !isDefault(text, o) {
		if text, err = chosen(text, o.Choices); err != nil {
			return out, err
		}
	}
	out, err = answerOf[Out](text)
	if _, isBool := any(out).(bool); err != nil || isBool || len(o.Schema) == 0 {
		return out, err
	}
	if why := model.Fits(o.Schema, json.RawMessage(text)); why != "" {
		return out, errors.New(why)
	}
	return out, nil
}

// isDefault reports whether a text is the author's own answer, which would come again.
func isDefault(text string, o *AskOptions) bool { return o.Default != "" && text == o.Default }

// chosen returns the choice that a text is. Like the machine, it takes small letters for capitals.
func chosen(text string, choices []string) (string, error) {
	if slices.Contains(choices, text) {
		return text, nil
	}
	said := strings.TrimSpace(text)
	i := slices.IndexFunc(choices, func(c string) bool { return strings.EqualFold(strings.TrimSpace(c), said) })
	if i < 0 {
		return "", fmt.Errorf("%.40q is none of: %s", text, strings.Join(choices, ", "))
	}
	return choices[i], nil
}
