package testenv

import (
	"os"
	"testing"
)

// Variable is the environment variable that asks for more tests. With "need", a test that
// lacks something of the machine fails. With "all", the tests that take long run too.
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

// Need skips a test if the machine lacks something that the test needs. With
// FERMATA_TESTS=need or all, the test fails instead. Nil says that nothing is missing.
func Need(t testing.TB, missing error) {
	t.Helper()
	switch {
	case missing == nil:
	case All(), os.Getenv(Variable) == "need":
		t.Fatal(missing)
	default:
		t.Skip(missing)
	}
}
