package model_test

import (
	"encoding/json"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// The answer of an agent has the form of a Go type.
func ExampleOutputOf() {
	type verdict struct {
		Urgent bool   `json:"urgent" jsonschema:"whether a person has to look today"`
		Reply  string `json:"reply,omitempty"`
	}
	schema := model.OutputOf[verdict]() // agent.Definition.Output
	fmt.Println(string(schema))
	fmt.Println(model.Fits(schema, json.RawMessage(`{"urgent":true}`)) == "")
	fmt.Println(model.Fits(schema, json.RawMessage(`{"reply":"Sorry."}`)) == "")
	// Output:
	// {"type":"object","properties":{"urgent":{"type":"boolean","description":"whether a person has to look today"},"reply":{"type":"string"}},"required":["urgent"],"additionalProperties":false}
	// true
	// false
}

// A worker gives a model the price and the window that its adapter does not know.
func ExampleWithInfo() {
	local := model.WithInfo(newHouse("http://127.0.0.1:11434"), "qwen3", model.Info{
		Price:  agent.Price{Input: agent.Dollar / 10, Output: agent.Dollar / 2}, // of a million tokens
		Window: 40_960,
	})
	info := local.Info("") // the name is always qwen3
	fmt.Println(info.Window, "tokens,", info.Price.Of(agent.Usage{Input: 20_000, Output: 1_000}), "USD for a call")
	// Output: 40960 tokens, 0.0025 USD for a call
}

// A fault says whether another attempt may help, and shows no key.
func ExampleFault() {
	const key = "house-0123456789abcdef"
	err := model.Fault(agent.FaultRateLimit, 429, 20*time.Second, "the key "+key+" has made too many calls", key)
	fmt.Println(err)
	fmt.Println(err.Code, err.Retryable, err.RetryAfter)
	// Output:
	// the key [secret] has made too many calls
	// provider_error true 20s
}

// An adapter reads a stream of server-sent events.
func ExampleEvents() {
	stream := strings.NewReader("data: {\"text\":\"It was \"}\n\n: still there\n\ndata: {\"text\":\"broken.\"}\n\n")
	err := model.Events(stream, func(data []byte) error {
		var piece struct{ Text string }
		if err := json.Unmarshal(data, &piece); err != nil {
			return err
		}
		fmt.Print(piece.Text)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: It was broken.
}
