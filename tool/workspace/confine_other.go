//go:build !linux

package workspace

// landlockABI is zero: only Linux has Landlock.
func landlockABI() int { return 0 }
