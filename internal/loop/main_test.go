package loop

import (
	"flag"
	"testing"

	"github.com/fermata-agents/fermata/internal/testenv"
)

// Unless all tests are asked for, the searches are short and always the same, so that a
// change elsewhere can't fail here. Flags on the command line count more.
func TestMain(m *testing.M) {
	if !testenv.All() {
		for name, value := range map[string]string{"rapid.checks": "20", "rapid.seed": "1"} {
			if err := flag.Set(name, value); err != nil {
				panic(err)
			}
		}
	}
	m.Run()
}

// every returns what a search does only every n-th time, unless all tests are asked for.
func every(n int) func(do func()) {
	i := 0
	return func(do func()) {
		if i++; i%n == 0 || testenv.All() {
			do()
		}
	}
}
