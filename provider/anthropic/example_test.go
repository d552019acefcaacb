package anthropic_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/anthropic"
)

// A worker makes one Model for the provider: anthropic.New(nil) takes the key
// from the environment. Here a stand-in answers.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		standin.Drip(stream(begin, open(0, textBlock), text(0, "Four, "), text(0, "of course."), stop(0), because("end_turn"), end), 0)(w, r)
	}))
	defer server.Close()
	claude := anthropic.New(&anthropic.Options{BaseURL: server.URL, APIKey: "sk-ant-…"})

	reply, err := claude.Generate(context.Background(), &model.Request{
		Model:        "claude-sonnet-5-5",
		Instructions: "Answer in a few words.",
		Messages:     []agent.Message{agent.TextMessage(agent.RoleUser, "What is two and two?")},
	}, func(d model.Delta) { fmt.Print(d.Text) })
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println()
	fmt.Println(reply.Finish, reply.Usage.Total(), "tokens")
	// Output:
	// Four, of course.
	// stop 35 tokens
}
