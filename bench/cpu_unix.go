//go:build unix

package main

import (
	"syscall"
	"time"
)

// spentCPU returns the processor time of this process.
func spentCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
