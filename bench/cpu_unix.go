//go:build unix

package main

import (
	"syscall"
	"time"
)

// spentCPU is the processor's time that this process has had.
func spentCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
