package value

import (
	"encoding/json"
	"fmt"

	jsonv1 "github.com/go-json-experiment/json/v1"
)

// IsText reports whether T is string, whose text is the value itself.
func IsText[T any]() bool {
	var zero T
	_, ok := any(zero).(string)
	return ok
}

// Text returns a value as text: a string as it is, others as JSON.
func Text(v any) (string, error) {
	if s, ok := v.(string); ok {
		return s, nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("a %T is no JSON: %w", v, err)
	}
	return string(raw), nil
}

// Read returns the value of a text: the text as it is, or what its JSON says. An empty text is
// the zero value.
func Read[T any](text string) (v T, err error) {
	if p, ok := any(&v).(*string); ok {
		*p = text
		return v, nil
	}
	if p, ok := any(&v).(*json.RawMessage); ok {
		*p = json.RawMessage(text)
		return v, nil
	}
	if text == "" {
		return v, nil
	}
	// A function that runs again reads all its results: encoding/json takes three times as long.
	if err := jsonv1.Unmarshal([]byte(text), &v); err != nil {
		return v, fmt.Errorf("%.200q is no %T: %w", text, v, err)
	}
	return v, nil
}
