//go:build !unix

package main

import "time"

// spentCPU is not known here.
func spentCPU() time.Duration { return 0 }
