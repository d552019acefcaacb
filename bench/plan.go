package main

import (
	"context"
	"math/rand/v2"
	"time"
)

// plan is what a run does, on either side: turns of a model call and a tool call, then
// some suspensions, and a last model call. It is the task of our run and the input of the
// baseline.
type plan struct {
	Turns int `json:"turns"`
	// Size is the size of each message of model and tool, in bytes.
	Size int `json:"size"`
	// Local runs the tool within the workflow task.
	Local bool `json:"local"`
	// ByValue puts all messages into the input of each model call. Only the baseline does
	// so.
	ByValue bool `json:"by_value,omitempty"`
	// Rests is how often the run waits for a resume after its turns.
	Rests int `json:"rests,omitempty"`
	// Each is how long a model call takes; zero means no time.
	Each time.Duration `json:"each,omitempty"`
	// Shows makes each tool call show an image of about a megabyte.
	Shows bool `json:"shows,omitempty"`
	// Thinks makes the model think forever after the turns and suspensions.
	Thinks bool `json:"thinks,omitempty"`
}

// wait lasts as long as a model call.
func (p plan) wait(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(p.Each):
	}
}

// move is what a model does when it is called.
type move string

const (
	callsTool move = "tool"
	wantsRest move = "rest"
	thinks    move = "thinks"
	isDone    move = "done"
)

// next returns what the model does in a turn, counted from 1.
func (p plan) next(turn int) move {
	switch {
	case turn <= p.Turns:
		return callsTool
	case turn <= p.Turns+p.Rests:
		return wantsRest
	case p.Thinks:
		return thinks
	}
	return isDone
}

// asks returns how often a run of the plan calls its model, if nobody stops it.
func (p plan) asks() int { return p.Turns + p.Rests + 1 }

// payload is a tool call's arguments.
type payload struct {
	N     int  `json:"n"`
	Size  int  `json:"size"`
	Shows bool `json:"shows,omitempty"`
}

// The messages are text that does not compress: real conversations are not repetitive
// either.
var letters = func() []byte {
	const alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-"
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 1<<20)
	for i := range b {
		b[i] = alphabet[r.IntN(len(alphabet))]
	}
	return b
}()

// text returns a message of a size, a different one for each n.
func text(size, n int) string {
	from := n * 7919 % (len(letters) - size)
	return string(letters[from : from+size])
}

// long is longer than a repetition.
const long = 10 * time.Minute
