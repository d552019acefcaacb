package model_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/model"
)

// The schema of an output derives from a Go type, and an answer of the type fits it.
func TestOutputOf(t *testing.T) {
	type trip struct {
		City string   `json:"city" jsonschema:"where to"`
		Days []int    `json:"days,omitempty"`
		Cost *float64 `json:"cost"`
	}
	require.JSONEq(t, `{"type":"object","properties":{"city":{"type":"string","description":"where to"},"days":{"type":["null","array"],"items":{"type":"integer"}},
		"cost":{"type":["null","number"]}},"required":["city","cost"],"additionalProperties":false}`, string(model.OutputOf[trip]()))
	require.JSONEq(t, `{"type":"array","items":{"type":"string"}}`, string(model.OutputOf[[]string]()))
	require.JSONEq(t, `{"type":"boolean"}`, string(model.OutputOf[bool]()))
	answer, err := json.Marshal(trip{City: "Rome"})
	require.NoError(t, err)
	require.Empty(t, model.Fits(model.OutputOf[trip](), answer))
	require.NotEmpty(t, model.Fits(model.OutputOf[trip](), json.RawMessage(`{"town":"Rome"}`)))
	type change struct {
		Diff json.RawMessage            `json:"diff"`
		More map[string]json.RawMessage `json:"more,omitempty"`
	}
	for _, fits := range []string{`{"diff":{"a":[1]}}`, `{"diff":"text","more":{"b":null}}`, `{"diff":[1,2]}`} {
		require.Empty(t, model.Fits(model.OutputOf[change](), json.RawMessage(fits)), "raw JSON is any JSON, and no list of bytes")
	}
	require.NotEmpty(t, model.Fits(model.OutputOf[change](), json.RawMessage(`{"more":{}}`)))
	require.Empty(t, model.Fits(model.OutputOf[json.RawMessage](), json.RawMessage(`{"a":1}`)))
	require.Panics(t, func() { model.OutputOf[chan int]() })
}
