package testenv

import (
	"os"
	"testing"
)

// Variable is the environment variable that asks for all tests if it is "all": also those
// that take long, and a test that lacks something of the machine fails then.
const Variable = "FERMATA_TESTS"

// All reports whether all tests are asked for.
func All() bool { return os.Getenv(Variable) == "all" }

// Long skips a test that takes too long for everybody, unless all are asked for.
func Long(t testing.TB) {
	t.Helper()
	if !All() {
		t.Skipf("takes long; %s=all runs it", Variable)
	}
}

// Need skips a test of which the machine lacks something, or fails it if all are asked for.
// A nil error means that it is there.
func Need(t testing.TB, missing error) {
	t.Helper()
	switch {
	case missing == nil:
	case All():
		t.Fatal(missing)
	default:
		t.Skip(missing)
	}
}
