//go:build !unix

package main

import "time"

// spentCPU is unknown on this system.
func spentCPU() time.Duration { return 0 }
