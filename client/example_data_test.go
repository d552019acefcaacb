package client_test

import (
	"context"
	"log"
	"os"

	temporal "go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/store"
)

// What stands here is not shown beside the examples that use it.

// dial is temporal.Dial, of a server where two refunds wait for an approval.
func dial() temporal.Client { return client.TwoRefunds() }

// archive is a store with a session that has ended.
func archive() (transcripts store.Store, remove func()) {
	ctx := context.Background()
	root, err := os.MkdirTemp("", "transcripts")
	if err != nil {
		log.Fatal(err)
	}
	dir, err := store.OpenDir(root, nil)
	if err != nil {
		log.Fatal(err)
	}
	asked, told := agent.TextMessage(agent.RoleUser, "Order 7 is broken."), agent.TextMessage(agent.RoleAssistant, "We have sent you 80 EUR.")
	digest, err := store.NewLog(dir).Seal(ctx, "", "ticket-7", "01a1", false, []agent.Event{
		{Seq: 1, Type: agent.EventMessage, Message: &asked}, {Seq: 2, Type: agent.EventMessage, Message: &told},
	})
	if err != nil {
		log.Fatal(err)
	}
	head := store.Head{
		V: store.HeadVersion, Version: 1, Session: "ticket-7", Run: "01a1", Agent: "lead", Status: agent.StatusCompleted,
		Digest: digest, Seq: 2, Fence: agent.Fence{Chain: 1, N: 1},
	}
	if _, err := store.NewLog(dir).PutHead(ctx, head); err != nil {
		log.Fatal(err)
	}
	return dir, func() { os.RemoveAll(root) }
}
