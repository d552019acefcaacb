package vertex_test

import (
	"testing"

	"github.com/fermata-agents/fermata/internal/standin"
)

func TestMain(m *testing.M) { standin.Main(m) }
