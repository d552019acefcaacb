//go:build linux || darwin

package disk

import (
	"math"

	"golang.org/x/sys/unix"
)

// statfs returns how many bytes an ordinary user may still write in a folder.
func statfs(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	// Bavail, not Bfree: the rest is reserved for root. Bounded, because huge file systems would
	// overflow.
	return int64(min(s.Bavail*uint64(s.Bsize), math.MaxInt64)), nil
}
