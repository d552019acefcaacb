package testenv

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// recorder is a test that records its failures and does not report them.
type recorder struct {
	testing.TB
	mu       sync.Mutex
	failures []string
	cleanups []func()
}

// FailureOf runs a check and returns its first failure; empty if the check passes. It
// tests helpers of tests, which have to fail.
func FailureOf(t *testing.T, check func(testing.TB)) string {
	t.Helper()
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for _, f := range r.cleanups {
				f()
			}
		}()
		check(r)
	}()
	<-done
	return strings.Join(r.failures[:min(1, len(r.failures))], "")
}

func (r *recorder) fail(message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, message)
}

func (r *recorder) Errorf(format string, args ...any) { r.fail(fmt.Sprintf(format, args...)) }

func (r *recorder) Error(args ...any) { r.fail(fmt.Sprint(args...)) }

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	r.FailNow()
}

func (r *recorder) FailNow() {
	r.fail("it failed")
	runtime.Goexit()
}

func (r *recorder) Cleanup(f func()) { r.cleanups = append([]func(){f}, r.cleanups...) }
