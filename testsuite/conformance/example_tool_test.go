package conformance_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/fermata-agents/fermata/testsuite/conformance"
	"github.com/fermata-agents/fermata/tool"
)

// bank stands for what a tool acts on. It makes a payment once for each key.
type bank struct {
	mu   sync.Mutex
	paid map[string]int // cents, by key
}

func (b *bank) pay(key string, cents int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.paid[key] = cents
}

func (b *bank) payments() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.paid)
}

// Payment is what the model writes.
type Payment struct {
	To    string `json:"to" jsonschema:"who gets the money"`
	Cents int    `json:"cents" jsonschema:"how much, in cents"`
}

// payTool may be made again after a crash, since the bank is told the call's key.
func payTool(b *bank) tool.Tool {
	return tool.New("pay", "Pays somebody.", func(ctx context.Context, c *tool.Call, in Payment) (string, error) {
		if in.Cents <= 0 {
			return "", tool.Refuse("a payment of %d cents", in.Cents)
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		b.pay(c.Key, in.Cents)
		return fmt.Sprintf("%d cents paid to %s", in.Cents, in.To), nil
	}, &tool.Options{Attempts: 3})
}

// A test of a tool is one call. With Effects it checks that a payment that is repeated is
// made once.
func ExampleTool() {
	TestPay := func(t *testing.T) {
		b := &bank{paid: map[string]int{}}
		conformance.Tool(t, payTool(b), &conformance.ToolOptions{
			Arguments: `{"to":"Ana","cents":500}`, Effects: b.payments, Secrets: []string{"sk-bank-123"},
		})
	}
	fmt.Printf("%T\n", TestPay)
	// Output: func(*testing.T)
}
