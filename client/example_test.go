package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"time"

	temporal "go.temporal.io/sdk/client"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/handoff"
)

// What the examples share: a client, which the first example makes, and a run of it.
var (
	c   *client.Client
	run *client.Run
)

// A program starts a run of an agent and reads its answer, which has a Go type.
func Example() {
	ctx := context.Background()
	server, err := temporal.DialContext(ctx, temporal.Options{HostPort: "127.0.0.1:7233"})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	c := client.New(server, nil)

	run, err := c.Start(ctx, "lead", "Order 7 is broken.", nil)
	if err != nil {
		log.Fatal(err)
	}
	end, err := run.Result(ctx)
	if err != nil {
		log.Fatal(err)
	}
	var verdict struct{ Reply string }
	if err := end.Decode(&verdict); err != nil { // why the run failed, if it did
		log.Fatal(err)
	}
	fmt.Println(verdict.Reply)
}

// A ticket is a session, so its second run knows what was said in the first.
func ExampleClient_Start() {
	ctx := context.Background()
	run, err := c.Start(ctx, "lead", "Order 7 is broken.", &client.StartOptions{
		Session: "ticket-7",
		ID:      "mail-4711", // a second start with this id says nothing
		Limits:  agent.Limits{CostUSD: agent.Dollar / 2},
		Labels:  map[string]string{"shop": "berlin"},
	})
	if errors.Is(err, agent.CodeBusy) {
		log.Fatal("the session has a live run: use Send")
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(run.Session, run.ID)
}

// The run of an HTTP handler ends with its request, if the client goes away.
func ExampleEndWith() {
	handler := func(w http.ResponseWriter, r *http.Request) {
		run, err := c.Start(r.Context(), "lead", r.FormValue("text"), &client.StartOptions{
			EndWith: &client.EndWith{Context: r.Context(), Reason: "client_disconnect"},
		})
		if err != nil {
			http.Error(w, "please try again", http.StatusServiceUnavailable)
			return
		}
		end, err := run.Result(r.Context()) // if the client goes, it returns when the run is cancelled
		if err == nil {
			fmt.Fprintln(w, end.Text)
			return
		}
		if err := run.Detach(); err != nil {
			log.Printf("run %s of session %s goes on: %v", run.ID, run.Session, err)
		}
	}
	http.HandleFunc("/ask", handler)
}

// A retry is stopped at a deadline of the program's own, and has time left for its handoff.
func ExampleRun_EndWith() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel() // after Result, which has taken EndWith back
	plan, err := c.Retry(ctx, "ticket-7", nil)
	if err != nil {
		log.Fatal(err)
	}
	run, err := plan.Start(ctx)
	if err != nil {
		log.Fatal(err)
	}
	soon, stop := context.WithTimeout(ctx, 20*time.Second)
	defer stop()
	if err := run.EndWith(client.EndWith{Context: soon, Verb: agent.VerbStop, Reason: "the shift is over"}); err != nil {
		log.Fatal(err)
	}
	end, err := run.Result(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(end.Status, end.Text)
}

// A person approves what a run and its sub-agents ask, as it comes.
func ExampleClient_Requests() {
	ctx := context.Background()
	for q, err := range c.Requests(ctx, "ticket-7") {
		if err != nil {
			log.Fatal(err)
		}
		if q.Type != agent.RequestApproval {
			continue // it stays open
		}
		fmt.Printf("%s of %s wants to call %s %s (y/n) ", q.Agent, q.Session, q.Call.Tool, q.Call.Arguments)
		var line string
		_, _ = fmt.Scanln(&line) // no line means no
		if line == "y" {
			_, err = c.Approve(ctx, q, nil)
		} else {
			_, err = c.Reject(ctx, q, "The clerk says no.", nil)
		}
		if err != nil && !errors.Is(err, agent.CodeStale) { // stale: somebody was quicker
			log.Fatal(err)
		}
	}
}

// A reader follows the events of a whole tree, and comes back with its cursor.
func ExampleClient_Events() {
	ctx := context.Background()
	cursor := "" // the session's beginning, or what was kept
	events := c.Events(ctx, "ticket-7", &client.EventsOptions{After: cursor, Follow: true, UntilEnd: true, Tree: true})
	for e, err := range events {
		if err != nil {
			log.Fatalf("read again after %q: %v", cursor, err)
		}
		cursor = e.Cursor()
		switch {
		case e.Message != nil && e.Message.Text() != "": // else it has calls or results
			fmt.Printf("%s: %s\n", e.Session, e.Message.Text())
		case e.Call != nil:
			fmt.Printf("%s: %s %s\n", e.Session, e.Type, e.Call.Tool)
		}
	}
}

// A reader shows the output of a run while the model writes it.
func ExamplePartials() {
	ctx := context.Background()
	type verdict struct{ Reply string }
	for p, err := range client.Partials[verdict](ctx, run) {
		if err != nil {
			log.Fatal(err) // also why the run failed, if it did
		}
		fmt.Printf("\r%s", p.Value.Reply) // it replaces the one before
		if p.Outcome != nil {
			fmt.Println() // this is the whole, and it was checked
		}
	}
}

// An interrupt holds a run at once, and a resume lets it continue with a message.
func ExampleRun_Interrupt() {
	ctx := context.Background()
	if _, err := run.Interrupt(ctx, "the customer rings", &client.InterruptOptions{Grace: 2 * time.Second}); err != nil {
		log.Fatal(err)
	}
	rest, err := run.Wait(ctx) // until it is suspended, or ended by itself
	if err != nil {
		log.Fatal(err)
	}
	if rest.Status != agent.StatusSuspended {
		return
	}
	fmt.Println("held:", rest.Suspension.Holds[0].Reason)
	resumed, err := run.Resume(ctx, &client.ResumeOptions{Message: "The customer prefers a voucher."})
	if err != nil {
		log.Fatal(err)
	}
	rest, err = resumed.Wait(ctx) // what the resume leads to
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(rest.Status)
}

// A stop ends a run and all runs below it with a handoff, which the next run gets.
func ExampleRun_Stop() {
	ctx := context.Background()
	if _, err := run.Stop(ctx, "the shift is over", &client.StopOptions{Deadline: 20 * time.Second}); err != nil {
		log.Fatal(err)
	}
	end, err := run.Result(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if end.Handoff == nil { // it completed or failed first
		fmt.Println(end.Status, end.Text)
		return
	}
	fmt.Print(handoff.Markdown(*end.Handoff))
	next, err := c.Start(ctx, "lead", "", &client.StartOptions{Briefing: end.Handoff})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("it goes on as", next.Session)
}

// A daemon is triggered by events, and goes on after a stop with what waited.
func ExampleClient_StartDaemon() {
	ctx := context.Background()
	desk, err := c.StartDaemon(ctx, "watcher", "", &client.StartOptions{Session: "desk"})
	if errors.Is(err, agent.CodeBusy) {
		desk, err = c.Daemon("desk"), nil // it works already
	}
	if err != nil {
		log.Fatal(err)
	}
	order := map[string]int{"order": 118}
	err = desk.Trigger(ctx, "orders.paid", order, &client.TriggerOptions{ID: "paid-118"}) // once, however often it is sent
	if errors.Is(err, agent.CodeQueueFull) {
		log.Fatal("send it again later, with the same id")
	}
	if err != nil {
		log.Fatal(err)
	}
	at, err := desk.Snapshot(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(at.Status, at.PendingEvents, "of", at.QueueCapacity)
	end, err := desk.Stop(ctx, "maintenance", nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(end.Status)
	if _, err := desk.Resume(ctx, nil); err != nil {
		log.Fatal(err)
	}
}

// A message goes to the live run of a session, or begins the next one.
func ExampleClient_Send() {
	ctx := context.Background()
	run, err := c.Send(ctx, "ticket-7", "The lamp is green, by the way.", &client.SendOptions{
		ID:    "mail-4712",     // said once, however often it is sent
		Mode:  agent.SendQueue, // when the run would be done
		Agent: "lead",          // if the session has no run yet
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the run", run.ID, "has it")
}

// The inbox has what waits for people, in all sessions.
func ExampleClient_Inbox() {
	c := client.New(dial(), nil)
	waits := &client.InboxOptions{WaitsFor: string(agent.RequestApproval), Older: time.Hour}
	for item, err := range c.Inbox(context.Background(), waits) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(item.Session, item.ID, item.Text)
	}
	// Output:
	// ticket-9/cashier-1 q-1 Run refund?
	// ticket-7/cashier-1 q-1 Run refund?
}

// A web page shows one page of a listing, with a link to the next.
func ExampleClient_ListPage() {
	c := client.New(dial(), nil)
	token := "" // of the link that was followed
	for {
		page, err := c.ListPage(context.Background(), &client.ListOptions{Agent: "cashier", Status: agent.StatusSuspended, PageSize: 1, PageToken: token})
		if err != nil {
			log.Fatal(err)
		}
		for _, r := range page.Runs {
			fmt.Println(r.Session, r.Status, r.WaitsFor)
		}
		if token = page.NextPageToken; token == "" {
			break
		}
	}
	// Output:
	// ticket-9/cashier-1 suspended [input_required approval]
	// ticket-7/cashier-1 suspended [input_required approval]
}

// A transcript is read from the store alone when Temporal has forgotten the session.
func ExampleClient_Transcript() {
	transcripts, remove := archive() // the store of the workers
	defer remove()
	c := client.New(nil, &client.Options{Store: transcripts})
	messages, err := c.Transcript(context.Background(), "ticket-7")
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range messages {
		fmt.Printf("%s: %s\n", m.Role, m.Text())
	}
	// Output:
	// user: Order 7 is broken.
	// assistant: We have sent you 80 EUR.
}
