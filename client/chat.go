package client

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/fermata-agents/fermata/agent"
)

// Chat is a conversation in one session that a program leads: it asks Input what the user says, sends
// it, waits for the agent, and asks again. S is a state of the program's own, which Fermata neither
// reads nor stores; a new Chat can begin with the state of an earlier one's end.
type Chat[S any] struct {
	// Session is the session to begin or to continue; empty means a new one.
	Session string
	// Agent is the agent of the session's next run; it may be empty for a session that has had a run.
	Agent string
	// By says who speaks. It is logged, and not authenticated.
	By string
	// Token proves who speaks, if a policy binds the verbs; empty without one.
	Token string
	// State is the state at the beginning.
	State S
	// Input returns what the user says next, or why the chat ends. last is what the agent has come to:
	// a run that has ended, or is suspended, perhaps with requests for Input to decide. It is nil
	// before the first message. An error ends the chat with it.
	Input func(ctx context.Context, state S, last *agent.Outcome) (ChatInput, error)
	// Turned returns the state after the agent has come to rest; nil keeps the state as it is.
	Turned func(ctx context.Context, state S, o *agent.Outcome) (S, error)
}

// ChatInput is what [Chat.Input] returns. The zero value sends nothing, and waits again: for an Input
// that has decided a request itself.
type ChatInput struct {
	// Text is the user's message. If the run asks one question, it is the answer.
	Text string
	// Files go along with it.
	Files []FileInput
	// Exit ends the chat, and says why, as "/quit"; empty goes on. A live run stays as it is.
	Exit string
}

// ChatEnd says how a chat ended.
type ChatEnd[S any] struct {
	Session string
	// Reason is the Exit that Input returned.
	Reason string
	// State is the state at the end.
	State S
	// Last is what the agent came to last; nil if nothing was said.
	Last *agent.Outcome
}

// Run leads the chat until Input ends it. If it fails, the end has the session and the state so far.
// Errors are those of [Client.Send], [Client.Answer], [Run.Wait], Input and Turned.
func (h Chat[S]) Run(ctx context.Context, c *Client) (*ChatEnd[S], error) {
	end := &ChatEnd[S]{Session: h.Session, State: h.State}
	if end.Session == "" {
		end.Session = uuid.Must(uuid.NewV7()).String()
	}
	for {
		in, err := h.Input(ctx, end.State, end.Last)
		if err != nil {
			return end, fmt.Errorf("the chat of session %s asked for input: %w", end.Session, err)
		}
		if in.Exit != "" {
			end.Reason = in.Exit
			return end, nil
		}
		run, err := h.say(ctx, c, end, in)
		if err != nil {
			return end, err
		}
		if end.Last, err = run.Wait(ctx); err != nil {
			return end, err
		}
		if h.Turned == nil {
			continue
		}
		if end.State, err = h.Turned(ctx, end.State, end.Last); err != nil {
			return end, fmt.Errorf("the chat of session %s took a turn: %w", end.Session, err)
		}
	}
}

// say sends a message, or answers the one question that is open.
func (h Chat[S]) say(ctx context.Context, c *Client, end *ChatEnd[S], in ChatInput) (*Run, error) {
	if in.Text == "" && len(in.Files) == 0 {
		return c.Get(ctx, end.Session)
	}
	if q, asks := question(end.Last); asks {
		ack, err := c.Answer(ctx, q, in.Text, &AnswerOptions{Files: in.Files, By: h.By, Token: h.Token})
		if err != nil {
			return nil, err
		}
		return c.RunOf(ack), nil
	}
	return c.Send(ctx, end.Session, in.Text, &SendOptions{Files: in.Files, By: h.By, Token: h.Token, Agent: h.Agent})
}

// question returns the question that a run asks, if it asks one and nothing else. A message ends the
// wait of the tool wait_for_user, so that one is no question.
func question(o *agent.Outcome) (agent.Request, bool) {
	if o == nil || o.Suspension == nil || len(o.Suspension.Requests) != 1 {
		return agent.Request{}, false
	}
	q := o.Suspension.Requests[0]
	handsOver := q.Call != nil && q.Call.Tool == agent.WaitForUserTool
	return q, q.Type == agent.RequestQuestion && !handsOver
}
