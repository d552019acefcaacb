package bedrock_test

import (
	"strings"
	"testing"

	"github.com/fermata-agents/fermata/internal/standin"
)

func TestEndless(t *testing.T) {
	long := strings.Repeat("x", 64<<10)
	standin.Endless(t, at, ask("Hello"), secret, "", map[string]string{
		"arguments": frame("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"toolUse":{"input":"`+long+`"}}}`),
		"signature": frame("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"`+long+`"}}}`),
		"calls":     frame("contentBlockStart", `{"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"c","name":"pay"}}}`) + frame("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"."}}`),
	})
}
