package bedrock_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/bedrock"
)

// A worker makes one Model for a region: bedrock.New(nil) takes region and credentials
// from AWS's default chain. Here a stand-in answers.
func Example() {
	server := httptest.NewServer(streams(begin, text(0, "Four, "), text(0, "of course."), stop(0), because("end_turn"), used))
	defer server.Close()
	models := bedrock.New(&bedrock.Options{
		BaseURL: server.URL, Region: "eu-central-1", Credentials: credentials.NewStaticCredentialsProvider("AKID…", "secret", ""),
	})

	reply, err := models.Generate(context.Background(), &model.Request{
		Model:        "eu.anthropic.claude-sonnet-5-5",
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
