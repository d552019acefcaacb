package handoff

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/excerpt"
)

func TestWhatTheModelSaysIsAdded(t *testing.T) {
	before := skeleton()
	h := Complete(before, goodAnswer)
	require.Equal(t, agent.SummarizedByModel, h.SummarizedBy)
	require.Equal(t, []any{0.9, agent.SummarizedByModel}, []any{h.Confidence, h.ConfidenceBy})
	require.Equal(t, "The flights are found, the hotel is **not** certain.\n\n# Next\nAsk Hotel Roma.", h.Summary)
	require.Equal(t, []agent.WorkItem{
		{What: "flight_search succeeded", Ref: "t3.1", By: "trip-42"},
		{What: "Found three flights", Ref: "flights.md", By: "trip-42"},
	}, h.Done, "the runtime's own comes first, and its double is left out")
	require.Equal(t, []agent.WorkItem{{What: "hotel_book was given up", Ref: "t4.1", By: "trip-42"}, {What: "Booking Hotel Roma", By: "trip-42"}}, h.InFlight)
	require.Equal(t, []agent.WorkItem{{What: "Trains", By: "trip-42"}, {What: "Museums", By: "trip-42"}}, h.NotStarted)
	require.Len(t, h.Failed, 1)
	require.Equal(t, []string{"Is breakfast wanted?"}, h.OpenQuestions)
	require.Equal(t, []string{"No night trains: # too loud"}, h.Decisions)
	require.Equal(t, []agent.Evidence{{Kind: "url", Ref: "https://hotel.example", Note: "prices"}, {Kind: "call", Ref: "t3.1"}}, h.Evidence)
	require.Equal(t, skeleton(), before, "what was given is not changed")
}

func TestTheModelCantChangeWhatTheRuntimeKnows(t *testing.T) {
	said := `{"summary":"x","v":9,"session":"evil","run":"evil","agent":"evil","status":"completed","task":"evil","reason":"evil",
	 "usage":{"input_tokens":1},"cost_usd":0,"remaining":{"turns":99},"unknown_effects":[],"requests":[],"children":[],"summarized_by":"rule",
	 "done":[{"what":"All","by":"evil"},{"what":"train_search failed: no such station","ref":"t3.2"},{"what":"hotel_book was given up"}]}`
	known := skeleton()
	known.Children = children()
	h := Complete(known, said)
	require.Equal(t, []agent.WorkItem{{What: "flight_search succeeded", Ref: "t3.1", By: "trip-42"}, {What: "All", By: "trip-42"}}, h.Done,
		"what failed and what is in flight is not done, whatever the model says")
	h.Done, known.Done = nil, nil
	h.Summary, h.Confidence, h.ConfidenceBy, h.SummarizedBy, h.V = known.Summary, known.Confidence, known.ConfidenceBy, known.SummarizedBy, known.V
	h.InFlight, h.Failed = known.InFlight, known.Failed // they have got By
	require.Equal(t, known, h)
}

func TestItemsThatAreNotTheSame(t *testing.T) {
	h := Complete(agent.Handoff{Session: "s", Done: []agent.WorkItem{{What: "edited", Ref: "a.go"}, {What: "tested"}}},
		`{"summary":"x","done":[{"what":"edited","ref":"b.go"},{"what":"edited","ref":"b.go"},{"what":"edited"},{"what":"tested","ref":"a_test.go"}]}`)
	require.Equal(t, []agent.WorkItem{{What: "edited", Ref: "a.go", By: "s"}, {What: "tested", By: "s"}, {What: "edited", Ref: "b.go", By: "s"}}, h.Done)
}

func TestWaysToSayIt(t *testing.T) {
	for name, said := range map[string]string{
		"plain":               `{"summary":"x","done":[{"what":"y"}]}`,
		"white space":         "\n\t {\"summary\":\" x \",\"done\":[{\"what\":\" y \"}]} \n",
		"fenced":              "```json\n{\"summary\":\"x\",\"done\":[{\"what\":\"y\"}]}\n```",
		"prose around":        `Here you are: {"summary":"x","done":[{"what":"y"}]} Bye {friend}.`,
		"braces before":       "As `{json}` then:\n```\n{\"summary\":\"x\",\"done\":[{\"what\":\"y\"}]}\n```\n",
		"empty object before": "As {}:\n```\n{\"summary\":\"x\",\"done\":[{\"what\":\"y\"}]}\n```\n",
		"texts for items":     `{"summary":"x","done":["y"]}`,
		"one without a list":  `{"summary":"x","done":{"what":"y"}}`,
		"blanks and nulls":    `{"summary":"x","done":[null,"",{"what":"y"}],"failed":null,"evidence":[],"confidence":null}`,
		"in a list":           `[{"summary":"x","done":[{"what":"y"}]}]`,
	} {
		h := Complete(agent.Handoff{Session: "s"}, said)
		require.Equal(t, agent.SummarizedByModel, h.SummarizedBy, name)
		require.Equal(t, "x", h.Summary, name)
		require.Equal(t, []agent.WorkItem{{What: "y", By: "s"}}, h.Done, name)
		require.Equal(t, []any{0.78, agent.SummarizedByRule}, []any{h.Confidence, h.ConfidenceBy}, "%s: the model gave no number", name)
	}
}

func TestAnswersOfNoUse(t *testing.T) {
	for _, said := range []string{
		"", "  ", "I am sorry.", "{", `{"summary":`, `{"summary":"cut off`, `{"summary":"x","done":[{"what":"y"}`, "```json\n{\"summary\":\"x\"\n```",
		"{}", "null", `"summary"`, "[]", `{"summary":""}`, `{"summary":" "}`, `{"summary":null}`, `{"summary":5}`, `{"summary":{"summary":"x"}}`,
		`{"done":[{"what":"y"}]}`, strings.Repeat("{", 10_000), strings.Repeat(`{"a":`, 20_000),
	} {
		h := Complete(skeleton(), said)
		require.Equal(t, agent.SummarizedByRule, h.SummarizedBy, "%.40s", said)
		require.Equal(t, "Next I will book the hotel.", h.Summary, "%.40s", said)
		require.Equal(t, []any{0.78, agent.SummarizedByRule}, []any{h.Confidence, h.ConfidenceBy}, "%.40s", said)
		require.Len(t, h.Done, 1)
		require.Equal(t, "trip-42", h.Done[0].By)
	}
}

func TestPartsThatCantBeRead(t *testing.T) {
	for part, want := range map[string]string{
		`"done":5`:                "done",
		`"done":[5,{"what":"y"}]`: "done",
		`"failed":[{"item":"deploy"}],"done":["y"]`:   "failed",
		`"evidence":[{"kind":"book","ref":"r"}]`:      "evidence",
		`"evidence":["a.go"],"decisions":[{}]`:        "decisions, evidence",
		`"confidence":85`:                             "confidence",
		`"confidence":"high","open_questions":[[""]]`: "open_questions, confidence",
	} {
		h := Complete(agent.Handoff{Session: "s"}, `{"summary":"x",`+part+`}`)
		require.Equal(t, "x\n[not all of the model's answer could be read: "+want+"]", h.Summary)
		require.Equal(t, []any{0.78, agent.SummarizedByRule}, []any{h.Confidence, h.ConfidenceBy})
	}
}

// Where no model sums up, a rule does (HL-58, HL-59).
func TestSummariesByRule(t *testing.T) {
	long := strings.Repeat("ü", maxSummary)
	for name, c := range map[string]struct {
		h          agent.Handoff
		summary    string
		confidence float64
	}{
		"the last words": {agent.Handoff{Summary: "So far.", Done: []agent.WorkItem{{What: "a"}}}, "So far.", 0.78},
		"the last work":  {agent.Handoff{Summary: " ", Done: []agent.WorkItem{{What: "a"}, {What: "b"}}}, "The agent was stopped and did not sum up. The last thing that it did: b", 0.78},
		"nothing":        {agent.Handoff{NotStarted: []agent.WorkItem{{What: "a"}}}, "The agent was stopped before it had said anything.", 0.45},
		"long words":     {agent.Handoff{Summary: long}, excerpt.Of(long, maxSummary-markRoom, len(long)), 0.78},
	} {
		h := Complete(c.h, "")
		require.Equal(t, c.summary, h.Summary, name)
		require.Equal(t, []any{c.confidence, agent.SummarizedByRule}, []any{h.Confidence, h.ConfidenceBy}, name)
		require.Equal(t, agent.SummarizedByRule, h.SummarizedBy, name)
		require.Equal(t, 1, h.V)
		require.NotEmpty(t, h.Task)
		require.NotEmpty(t, h.Reason)
	}
}

func TestTextsAndListsAreBounded(t *testing.T) {
	var items, texts, evidence []string
	for i := range 250 {
		items = append(items, fmt.Sprintf(`{"what":"%d %s","ref":"%s"}`, i, strings.Repeat("w", 5000), strings.Repeat("r", 5000)))
		texts = append(texts, fmt.Sprintf(`"%d %s"`, i, strings.Repeat("q", 5000)))
		evidence = append(evidence, fmt.Sprintf(`{"kind":"file","ref":"%d %s","note":"%s"}`, i, strings.Repeat("e", 5000), strings.Repeat("n", 5000)))
	}
	all := "[" + strings.Join(items, ",") + "]"
	said := `{"summary":"` + strings.Repeat("s", 50_000) + `","done":` + all + `,"failed":` + all + `,"in_flight":` + all + `,"not_started":` + all +
		`,"open_questions":[` + strings.Join(texts, ",") + `],"decisions":[` + strings.Join(texts, ",") + `],"evidence":[` + strings.Join(evidence, ",") + `],"confidence":"x"}`
	own := agent.Handoff{Session: "s", Task: strings.Repeat("t", 5000), Reason: strings.Repeat("r", 5000), Done: []agent.WorkItem{{What: "own"}}}
	h := Complete(own, said)
	require.LessOrEqual(t, len(h.Summary), maxSummary)
	require.Contains(t, h.Summary, "[cut here: ")
	require.Contains(t, h.Summary, "could be read: confidence]", "the mark is not cut itself")
	require.Equal(t, "own", h.Done[0].What)
	for _, list := range [][]agent.WorkItem{h.Done, h.Failed, h.InFlight, h.NotStarted} {
		require.Len(t, list, maxEntries)
		for _, i := range list {
			require.LessOrEqual(t, len(i.What), maxText)
			require.LessOrEqual(t, len(i.Ref), maxText)
			require.Equal(t, "s", i.By)
		}
		require.Contains(t, list[1].What, "[cut here: ")
	}
	require.Equal(t, agent.WorkItem{What: "[cut here: 152 more are not shown]", Ref: "session:s", By: "s"}, h.Done[99])
	require.Equal(t, "[cut here: 151 more are not shown]", h.Failed[99].What)
	for _, list := range [][]string{h.OpenQuestions, h.Decisions} {
		require.Len(t, list, maxEntries)
		require.LessOrEqual(t, len(list[0]), maxText)
		require.Equal(t, "[cut here: 151 more are not shown]", list[99])
	}
	require.Len(t, h.Evidence, maxEntries)
	require.LessOrEqual(t, len(h.Evidence[0].Ref), maxText)
	require.LessOrEqual(t, len(h.Evidence[0].Note), maxText)
	require.Equal(t, agent.Evidence{Kind: "call", Ref: "session:s", Note: "[cut here: 151 more are not shown]"}, h.Evidence[99])
	require.LessOrEqual(t, len(h.Task)+len(h.Reason), 2*maxText)
}

// A workflow's state keeps the slices that it gives: nothing is written behind their ends.
func TestNothingIsWrittenIntoSharedSlices(t *testing.T) {
	room := func(n int) []agent.WorkItem {
		return append(make([]agent.WorkItem, 0, n+8), make([]agent.WorkItem, n)...)
	}
	h := agent.Handoff{Session: "s", Done: room(150), OpenQuestions: make([]string, 1, 9)}
	for i := range h.Done {
		h.Done[i].What = fmt.Sprint(i)
	}
	Complete(h, `{"summary":"x","done":["new"],"open_questions":["new"]}`)
	require.Equal(t, agent.WorkItem{What: "99"}, h.Done[99])
	require.Equal(t, agent.WorkItem{}, h.Done[:151][150])
	require.Empty(t, h.OpenQuestions[:2][1])
}

// The prompt and the schema name the same fields, and what the schema allows is
// what is read.
func TestPromptAndSchemaAgree(t *testing.T) {
	schema := resolved(t, SummarySchema())
	var answer any
	require.NoError(t, json.Unmarshal([]byte(goodAnswer), &answer))
	require.NoError(t, schema.Validate(answer))
	require.Error(t, schema.Validate(map[string]any{"done": []any{}}))
	require.Error(t, schema.Validate(map[string]any{"summary": "x", "usage": 1}))
	require.Len(t, schema.Schema().Properties, 9)
	for name, s := range schema.Schema().Properties {
		require.Contains(t, Prompt, `"`+name+`"`)
		a, ok := read(`{"summary":"x","` + name + `":{}}`)
		require.True(t, ok || name == "summary")
		require.True(t, strings.Contains(a.summary, name) || name == "summary", "%s is looked at", name)
		require.NotEmpty(t, s.Description)
	}
}

// Providers hold a model only to schemas of these keywords; with another one the
// schema would not be sent at all.
func TestProvidersCanHoldAModelToTheSummary(t *testing.T) {
	var walk func(v any)
	walk = func(v any) {
		node := v.(map[string]any)
		for key, value := range node {
			require.Contains(t, []string{"type", "description", "enum", "properties", "additionalProperties", "required", "items"}, key)
			switch key {
			case "items":
				walk(value)
			case "properties":
				require.Equal(t, false, node["additionalProperties"])
				for _, p := range value.(map[string]any) {
					walk(p)
				}
			}
		}
	}
	var tree any
	require.NoError(t, json.Unmarshal(SummarySchema(), &tree))
	walk(tree)
}

func resolved(t testing.TB, raw json.RawMessage) *jsonschema.Resolved {
	t.Helper()
	var s jsonschema.Schema
	require.NoError(t, json.Unmarshal(raw, &s))
	r, err := s.Resolve(nil)
	require.NoError(t, err)
	return r
}
