//go:build !linux

package workspace_test

import (
	"os"
	"testing"
)

func asNobody(t *testing.T, f func()) {
	if os.Getuid() <= 0 {
		t.Skip("modes of files mean nothing to this user")
	}
	f()
}
