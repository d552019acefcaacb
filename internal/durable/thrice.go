package durable

import (
	"context"
	"errors"

	"github.com/fermata-agents/fermata/agent"
)

// Thrice asks the server up to three times while it does not answer in time: a server that
// stalls for a moment ends no wait of hours. The SDK gives each attempt 10 seconds, or half
// of what the context has left. Errors are those of [FromRPC]. What is asked must be harmless
// when it is asked twice.
func Thrice[T any](ctx context.Context, ask func() (T, error)) (answer T, err error) {
	for range 3 {
		answer, err = ask()
		if err = FromRPC(err); !errors.Is(err, agent.CodeTimeout) || ctx.Err() != nil {
			break
		}
	}
	return answer, err
}
