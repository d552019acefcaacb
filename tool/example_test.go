package tool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"log"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/tool"
)

// A tool is a function, and the model sees its arguments as a JSON Schema.
func ExampleNew() {
	type order struct {
		Number int `json:"number" jsonschema:"the order's number"`
	}
	lookUp := tool.New("look_up", "Looks an order up.",
		func(_ context.Context, _ *tool.Call, in order) (string, error) {
			return fmt.Sprintf("order %d: a lamp for 80 EUR", in.Number), nil
		},
		&tool.Options{Local: true})
	fmt.Println(string(lookUp.Spec().Input))

	text, err := lookUp.Call(context.Background(), &tool.Call{Arguments: json.RawMessage(`{"number":7}`)})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(text)
	// Output:
	// {"type":"object","properties":{"number":{"type":"integer","description":"the order's number"}},"required":["number"],"additionalProperties":false}
	// order 7: a lamp for 80 EUR
}

// A tool shows the model what it has drawn.
func ExampleCall_AddFile() {
	type sales struct {
		Year int `json:"year"`
	}
	plot := tool.New("plot", "Draws a chart of a year's sales.", func(ctx context.Context, c *tool.Call, in sales) (string, error) {
		var b bytes.Buffer
		if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 640, 480))); err != nil {
			return "", err
		}
		f := agent.FileInput{Name: fmt.Sprintf("sales-%d.png", in.Year), Text: "a chart of the sales by month", Data: b.Bytes()}
		if err := c.AddFile(ctx, f); err != nil {
			return "", err
		}
		return "The chart is drawn.", nil
	}, nil)
	fmt.Println(plot.Spec().Name)
	// Output: plot
}

// A person approves each refund, whichever agent asks for it.
func ExampleNew_approval() {
	type refund struct {
		Order int    `json:"order" jsonschema:"the order's number"`
		IBAN  string `json:"iban" jsonschema:"where the money goes"`
	}
	payBack := tool.New("refund", "Pays money back.",
		func(_ context.Context, _ *tool.Call, in refund) (string, error) {
			return "the money is on its way", nil
		},
		&tool.Options{
			Timeout: 30 * time.Second,
			Secrets: []string{"iban"}, // the person does not see it
			Approval: &agent.ToolApproval{
				Reason:         "It costs money.",
				AnswerTimeouts: agent.AnswerTimeouts{Deadline: 3 * agent.Day}, // then it is rejected
			},
		})
	if err := payBack.Err(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(payBack.Spec().Approval.Reason, payBack.Spec().Approval.Deadline)
	// Output: It costs money. 72h
}

// Each attempt at a call has the same key, so a bank that knows the key pays once.
func ExampleCall() {
	paid := map[string]string{} // what the bank remembers
	payBack := tool.New("refund", "Pays money back.",
		func(_ context.Context, call *tool.Call, in struct{ EUR int }) (string, error) {
			if receipt, ok := paid[call.Key]; ok {
				return receipt, nil
			}
			paid[call.Key] = fmt.Sprintf("%d EUR paid in attempt %d", in.EUR, call.Attempt)
			return paid[call.Key], nil
		},
		&tool.Options{Attempts: 3})
	for attempt := 1; attempt <= 2; attempt++ {
		call := &tool.Call{Key: "01a1/t3.1", Attempt: attempt, Arguments: json.RawMessage(`{"EUR":80}`)}
		text, err := payBack.Call(context.Background(), call)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(text)
	}
	// Output:
	// 80 EUR paid in attempt 1
	// 80 EUR paid in attempt 1
}

// A tool asks a person, and its run waits for the answer, for months if it has to.
func ExampleCall_Ask() {
	payBack := tool.New("refund", "Pays money back.",
		func(_ context.Context, call *tool.Call, _ struct{}) (string, error) {
			answer, err := call.Ask(agent.ToolQuestion{Text: "How is it paid back?", Choices: []string{"bank", "voucher"}})
			if err != nil {
				return "", err // tool.ErrAsked: the call is made again with the answer
			}
			if answer.Declined {
				return "", tool.Refuse("nobody said how it is paid back")
			}
			return "paid back by " + answer.Text, nil
		}, nil)

	call := tool.Call{Arguments: json.RawMessage(`{}`)}
	_, err := payBack.Call(context.Background(), &call)
	fmt.Println(err, errors.Is(err, tool.ErrAsked))
	text, err := payBack.Call(context.Background(), answered(call, "voucher")) // as the runtime does it
	fmt.Println(text, err)
	// Output:
	// a person is asked true
	// paid back by voucher <nil>
}

// A tool that did nothing refuses, and the model is told why.
func ExampleRefuse() {
	payBack := tool.New("refund", "Pays money back.",
		func(_ context.Context, _ *tool.Call, in struct{ EUR int }) (string, error) {
			if in.EUR > 500 {
				return "", tool.Refuse("%d EUR are too much: the shop pays back at most 500", in.EUR)
			}
			return "paid", nil
		}, nil)
	_, err := payBack.Call(context.Background(), &tool.Call{Arguments: json.RawMessage(`{"EUR":900}`)})
	fmt.Println(agent.CodeOf(err), "-", err)
	// Output: denied - 900 EUR are too much: the shop pays back at most 500
}

// A tool that lost its connection says that nobody knows whether the money was paid.
func ExampleUnknown() {
	err := tool.Unknown("the bank did not answer: %w", io.ErrUnexpectedEOF)
	fmt.Println(err)
	fmt.Println(errors.Is(err, tool.ErrUnknown), errors.Is(err, io.ErrUnexpectedEOF))
	// Output:
	// the bank did not answer: unexpected EOF
	// true true
}

// Tools of a session keep a value for each other, which the model does not see.
func ExampleKey() {
	const refunds tool.Key[int] = "refunds"
	payBack := tool.New("refund", "Pays money back.",
		func(ctx context.Context, call *tool.Call, _ struct{}) (string, error) {
			n, _, err := refunds.Get(ctx, call) // 0 if it is not set
			if err != nil {
				return "", err
			}
			if err := refunds.Set(call, n+1); err != nil {
				return "", err
			}
			return fmt.Sprintf("refund %d of this session", n+1), nil
		}, nil)
	text, err := payBack.Call(context.Background(), &tool.Call{Arguments: json.RawMessage(`{}`)})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(text)
	// Output: refund 1 of this session
}
