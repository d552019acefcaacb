package store_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/keyring"
	"github.com/fermata-agents/fermata/store"
)

// said is a message as the runtime writes it, with its number in the session.
func said(seq int64, role agent.Role, text string) []agent.Event {
	m := agent.TextMessage(role, text)
	return []agent.Event{{Seq: seq, Type: agent.EventMessage, Message: &m}}
}

// folder is a store in a folder that is removed in the end.
func folder() (d *store.Dir, remove func()) {
	root, err := os.MkdirTemp("", "transcripts")
	if err != nil {
		log.Fatal(err)
	}
	if d, err = store.OpenDir(root, nil); err != nil {
		log.Fatal(err)
	}
	return d, func() { os.RemoveAll(root) }
}

// The workers of one machine share a folder, and each store has an identity.
func ExampleOpenDir() {
	ctx := context.Background()
	root, err := os.MkdirTemp("", "transcripts")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(root)
	transcripts, err := store.OpenDir(root, nil) // worker.Options.Store, client.Options.Store
	if err != nil {
		log.Fatal(err)
	}
	first, err := store.ID(ctx, transcripts)
	if err != nil {
		log.Fatal(err)
	}
	again, err := store.OpenDir(root, nil)
	if err != nil {
		log.Fatal(err)
	}
	second, err := store.ID(ctx, again)
	fmt.Println(first == second, err)
	// Output: true <nil>
}

// A log grows chunk by chunk, and the name of its last chunk finds all of it.
func ExampleLog() {
	ctx := context.Background()
	transcripts, remove := folder()
	defer remove()
	tickets := store.NewLog(transcripts)

	first, err := tickets.Seal(ctx, "", "ticket-7", "01a1", false, said(1, agent.RoleUser, "Order 7 is broken."))
	if err != nil {
		log.Fatal(err)
	}
	last, err := tickets.Seal(ctx, first, "ticket-7", "01a1", false, said(2, agent.RoleAssistant, "We have sent you 80 EUR."))
	if err != nil {
		log.Fatal(err)
	}
	view, err := tickets.View(ctx, last)
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range view.Messages() {
		fmt.Printf("%s: %s\n", m.Role, m.Text())
	}
	// Output:
	// user: Order 7 is broken.
	// assistant: We have sent you 80 EUR.
}

// An encrypted store wraps any other one, and whoever has a key reads it as before.
func ExampleEncrypt() {
	ctx := context.Background()
	transcripts, remove := folder()
	defer remove()
	key, err := keyring.New("2026-11") // keep it as a secret, as FERMATA_ENCRYPTION_KEYS
	if err != nil {
		log.Fatal(err)
	}
	keys, err := keyring.Parse(key)
	if err != nil {
		log.Fatal(err)
	}
	tickets := store.NewLog(store.Encrypt(transcripts, keys))
	name, err := tickets.Seal(ctx, "", "ticket-7", "01a1", false, said(1, agent.RoleUser, "Order 7 is broken."))
	if err != nil {
		log.Fatal(err)
	}
	for c, err := range transcripts.Chunks(ctx, "") {
		_, id, _ := strings.Cut(c.Name, ".")
		fmt.Println("encrypted with the key", id, err)
	}
	view, err := tickets.View(ctx, name)
	fmt.Println(view.Messages()[0].Text(), err)
	// Output:
	// encrypted with the key 2026-11 <nil>
	// Order 7 is broken. <nil>
}

// A check reads every session to its beginning, as after a restored backup.
func ExampleLog_Check() {
	ctx := context.Background()
	transcripts, remove := folder()
	defer remove()
	tickets := store.NewLog(transcripts)
	last, err := tickets.Seal(ctx, "", "ticket-7", "01a1", false, said(1, agent.RoleUser, "Order 7 is broken."))
	if err != nil {
		log.Fatal(err)
	}
	head := store.Head{V: store.HeadVersion, Version: 1, Session: "ticket-7", Run: "01a1", Digest: last, Seq: 1, Fence: agent.Fence{Chain: 1, N: 1}}
	if _, err := tickets.PutHead(ctx, head); err != nil {
		log.Fatal(err)
	}
	found, err := tickets.Check(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(found.Sessions, "session,", found.Chunks, "chunk,", len(found.Faults), "faults")
	// Output: 1 session, 1 chunk, 0 faults
}

// A vault keeps a secret of a session, and only an encrypted store has one.
func ExampleVault() {
	ctx := context.Background()
	transcripts, remove := folder()
	defer remove()
	fmt.Println(store.NewVault(transcripts) == nil)

	key, err := keyring.New("2026-11")
	if err != nil {
		log.Fatal(err)
	}
	keys, err := keyring.Parse(key)
	if err != nil {
		log.Fatal(err)
	}
	vault := store.NewVault(store.Encrypt(transcripts, keys))
	if err := vault.PutSecret(ctx, "ticket-7", "bank", []byte("a token")); err != nil {
		log.Fatal(err)
	}
	token, err := vault.Secret(ctx, "ticket-7", "bank")
	fmt.Println(string(token), err)
	// Output:
	// true
	// a token <nil>
}
