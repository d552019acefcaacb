package model_test

import (
	"context"
	"fmt"
	"log"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// metered tells how many tokens each call of a model uses.
type metered struct {
	model.Model
	used func(call model.CallInfo, tokens int64)
}

// Generate asks the model that is wrapped.
func (m metered) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
	reply, err := m.Model.Generate(ctx, req, emit)
	if err == nil {
		m.used(req.Call, reply.Usage.Total())
	}
	return reply, err
}

// parrot is a model for tests.
type parrot struct{}

// Info says that nothing is known.
func (parrot) Info(string) model.Info { return model.Info{} }

// Generate repeats the last message.
func (parrot) Generate(_ context.Context, req *model.Request, _ func(model.Delta)) (*model.Reply, error) {
	said := req.Messages[len(req.Messages)-1]
	return &model.Reply{Parts: said.Parts, Finish: model.FinishStop, Usage: agent.Usage{Input: 12, Output: 4}}, nil
}

// Middleware sees every call of a model: here it adds up the tokens of an agent.
func ExampleWrap() {
	tokens := map[string]int64{}
	meter := func(next model.Model) model.Model { // worker.Options.Middleware
		return metered{next, func(call model.CallInfo, n int64) { tokens[call.Agent] += n }}
	}
	m := model.Wrap(parrot{}, meter)
	for range 2 {
		_, err := m.Generate(context.Background(), &model.Request{
			Call:     model.CallInfo{Session: "ticket-7", Agent: "cashier"},
			Messages: []agent.Message{agent.TextMessage(agent.RoleUser, "Pay 80 EUR back.")},
		}, func(model.Delta) {})
		if err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(tokens)
	// Output: map[cashier:32]
}
