package signals

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// Conditions are read by one reader wherever they come from, a start among them,
// so that the same fault is told in the same way (catalogue HL-65 to HL-70,
// HA-139, HL-120, OA-114, OA-118).
func TestConditionsThatCantBeMeant(t *testing.T) {
	for data, path := range map[string]string{
		// HL-65: unknown keys, with their path.
		`{"foo":1}`:                                      "foo",
		`{"timeout":{"extra":true}}`:                     "timeout",
		`{"event":{"topic":"x","extra":true}}`:           "event.extra",
		`{"any":[{"after":"1h"},{"on_timeout":"fail"}]}`: "any[1].on_timeout",
		// HL-66: what triggers it is an event, which is an object of a form.
		`{"trigger":"x"}`:                            "trigger",
		`{"event":"orders.paid"}`:                    "event",
		`{"event":{}}`:                               "event.topic",
		`{"event":{"topic":"x","match":{"type":3}}}`: "event.match",
		`{"event":{"topic":"x","match":"x"}}`:        "event.match",
		// A schema that goes round in a circle would be followed forever.
		`{"event":{"topic":"x","match":{"$ref":"#"}}}`:                              "event.match",
		`{"any":[{"event":{"topic":"x","match":{"allOf":[{"$dynamicRef":"#"}]}}}]}`: "any[0].event.match",
		`{"event":{"topic":"x","match":{"$Ref":"#"}}}`:                              "event.match",
		`{"any":[{"event":{"topic":"x","match":{"allOf":[{"$DYNAMICREF":"#"}]}}}]}`: "any[0].event.match",
		`{"event":{"topic":"x","match":{"not":{"$ref":"#"},"not":{}}}}`:             "event.match.not",
		`{"any":[{"event":{"topic":"a b"}}]}`:                                       "any[0].event.topic",
		// HL-67: times are positive durations.
		`{"after":"-1m"}`:                            "after",
		`{"after":"-1ns"}`:                           "after",
		`{"after":"5"}`:                              "after",
		`{"after":5}`:                                "after",
		`{"after":"0s"}`:                             "after",
		`{"any":[{"after":"0s"}]}`:                   "any[0].after",
		`{"at":"0001-01-01T00:00:00Z"}`:              "at",
		`{"any":[{}]}`:                               "any[0]",
		`{"at":"tomorrow"}`:                          "at",
		`{"at":"2026-11-21T08:00:00Z","after":"1h"}`: "after",
		`{"any":[{"at":"2026-11-21T08:00:00Z","after":"1h"}]}`: "any[0].after",
		// HL-68, HL-70: what a time-out means is one of four.
		`{"after":"1h","on_timeout":"explode"}`:           "on_timeout",
		`{"after":"1h","on_timeout":""}`:                  "on_timeout",
		`{"after":"1h","on_timeout":"resume_with_input"}`: "input",
		`{"after":"1h","input":"go on"}`:                  "input",
		// HL-69: topics have a form.
		`{"event":{"topic":""}}`:          "event.topic",
		`{"event":{"topic":" "}}`:         "event.topic",
		`{"event":{"topic":"bad topic"}}`: "event.topic",
		`{"event":{"topic":"a/b"}}`:       "event.topic",
	} {
		_, err := DecodeConditions([]byte(data))
		var e *agent.Error
		require.True(t, errors.As(err, &e), data)
		require.Equal(t, agent.CodeInvalidInput, e.Code, data)
		require.Equal(t, path, e.Path, "%s: %v", data, e)
		_, refusal := DecodeStart([]byte(`{"agent":"a","input":{"text":"x"},"park":` + data + `}`))
		require.NotNil(t, refusal, data)
		require.Equal(t, agent.CodeInvalidInput, refusal.Code, data)
		require.Equal(t, "park."+path, refusal.Path, "%s: %v", data, refusal)
		_, _, told := DecodeParkRequest([]byte(`{"reason":"later","conditions":` + data + `}`))
		require.NotNil(t, told, data)
		require.Equal(t, agent.CodeInvalidInput, told.Code, data)
		require.Equal(t, "conditions."+path, told.Path, "%s: %v", data, told)
	}
}

// What conditions may say, and what they mean where they are silent (HL-63, HL-64,
// HL-68, HL-69).
func TestConditions(t *testing.T) {
	paid := &agent.EventCondition{Topic: "orders.paid"}
	for data, want := range map[string]agent.Conditions{
		``:                                    {},
		`{}`:                                  {},
		`{"after":"168h"}`:                    {After: agent.Duration(168 * time.Hour)},
		`{"at":"2026-11-21T08:00:00Z"}`:       {At: at},
		`{"event":{"topic":"orders.paid"}}`:   {Event: paid},
		`{"event":{"topic":" orders.paid "}}`: {Event: paid}, // HL-69: stored without the blanks
		`{"any":[{"after":"1h"},{"event":{"topic":" orders.paid"}}]}`: {Any: []agent.Condition{{After: agent.Duration(time.Hour)}, {Event: paid}}},
		`{"after":"1h","on_timeout":"resume_with_summary"}`:           {After: agent.Duration(time.Hour)},
		`{"after":"1h","on_timeout":"fail"}`:                          {After: agent.Duration(time.Hour), OnTimeout: agent.OnTimeoutFail},
		`{"after":"1h","on_timeout":"cancel"}`:                        {After: agent.Duration(time.Hour), OnTimeout: agent.OnTimeoutCancel},
		`{"after":"1h","on_timeout":"resume_with_input","input":"x"}`: {After: agent.Duration(time.Hour), OnTimeout: agent.OnTimeoutResumeWithInput, Input: "x"},
	} {
		if want.OnTimeout == "" {
			want.OnTimeout = agent.OnTimeoutResumeWithSummary // HL-68
		}
		got, err := DecodeConditions([]byte(data))
		require.NoError(t, err, data)
		require.Equal(t, want, got, data)
	}
}

// What is tidied is a copy.
func TestTidyLeavesWhatItWasGiven(t *testing.T) {
	given := agent.Conditions{Event: &agent.EventCondition{Topic: " a "}, Any: []agent.Condition{{Event: &agent.EventCondition{Topic: " b "}}}}
	got, err := completed(given)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, []string{got.Event.Topic, got.Any[0].Event.Topic})
	require.Equal(t, []string{" a ", " b "}, []string{given.Event.Topic, given.Any[0].Event.Topic})
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		match, payload string
		want           bool
	}{
		{``, ``, true}, {``, `{"a":1}`, true}, {`{}`, `3`, true},
		{`{"type":"object","required":["order"]}`, `{"order":42}`, true},
		{`{"type":"object","required":["order"]}`, `{"other":42}`, false},
		{`{"properties":{"order":{"const":42}}}`, `{"order":41}`, false},
		{`{"type":"object"}`, ``, false}, {`{"type":"null"}`, ``, true},
	} {
		got, err := Matches([]byte(c.match), []byte(c.payload))
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%s of %s", c.match, c.payload)
	}
	_, err := Matches([]byte(`{`), nil)
	require.Error(t, err)
}

// Numbers of arguments are compared as they are written; what can't be compared so is an
// error, whichever matcher takes the schema.
func TestMatchesComparesNumbersExactly(t *testing.T) {
	over := `{"properties":{"eur":{"exclusiveMinimum":500}}}`
	for payload, want := range map[string]bool{
		`{"eur":500}`: false, `{"eur":500.00}`: false, `{"eur":500.1}`: true, `{"eur":5e2}`: false,
		`{"eur":500.00000000000000000001}`: true, `{"eur":9007199254740993}`: true,
	} {
		got, err := Matches([]byte(over), []byte(payload))
		require.NoError(t, err)
		require.Equal(t, want, got, payload)
	}
	for _, schema := range []string{over, `{"properties":{"eur":{"exclusiveMinimum":500},"to":{"pattern":"^DE"}}}`} {
		_, err := Matches([]byte(schema), []byte(`{"eur":1e400000}`))
		require.Error(t, err)
	}
	patterned := []byte(`{"properties":{"eur":{"exclusiveMinimum":500},"to":{"pattern":"^DE"}}}`)
	for _, payload := range []string{`{"eur":500.00000000000000000001}`, `{"eur":9007199254740993}`, `{"eur":1e400}`} {
		_, err := Matches(patterned, []byte(payload))
		require.Error(t, err, payload)
	}
	got, err := Matches(patterned, []byte(`{"eur":500.1,"to":"DE1"}`))
	require.NoError(t, err)
	require.True(t, got)
}

// A schema that a model writes is short; one of a start may be longer.
func TestAModelsSchemaIsShort(t *testing.T) {
	long := `{"topic":"paid","match":{"enum":["` + strings.Repeat("x", 2<<10) + `"]}}`
	for data, path := range map[string]string{`{"event":` + long + `}`: "conditions.event.match", `{"any":[{"after":"1h"},{"event":` + long + `}]}`: "conditions.any[1].event.match"} {
		_, _, told := DecodeParkRequest([]byte(`{"reason":"later","conditions":` + data + `}`))
		require.NotNil(t, told)
		require.Equal(t, path, told.Path)
		require.ErrorContains(t, told, "at most 2048 are taken")
		_, err := DecodeConditions([]byte(data))
		require.NoError(t, err)
	}
}
