package openai_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/openai"
)

// A worker makes one Model for each server: openai.New(nil) is OpenAI, with the
// key from the environment; others have a name and an address. Here a stand-in
// answers.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		standin.Drip(stream(begin, text("Four, "), text("of course."), because("stop"), counted, end), 0)(w, r)
	}))
	defer server.Close()
	ollama := openai.New(&openai.Options{
		Name:    "ollama",
		BaseURL: server.URL + "/v1", // http://localhost:11434/v1
		Infos:   map[string]model.Info{"llama3.3": {Window: 131_072}},
	})

	reply, err := ollama.Generate(context.Background(), &model.Request{
		Model:        "llama3.3",
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
