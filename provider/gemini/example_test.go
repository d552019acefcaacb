package gemini_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/gemini"
)

// A worker makes one Model for the provider: gemini.New(nil) takes the key from the
// environment. Here a stand-in answers.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		standin.Drip(stream(chunk(text("Four, ")), chunk(text("of course.")), because("STOP")), 0)(w, r)
	}))
	defer server.Close()
	flash := gemini.New(&gemini.Options{BaseURL: server.URL, APIKey: "AIza…"})

	reply, err := flash.Generate(context.Background(), &model.Request{
		Model:        "gemini-3.8-flash",
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
