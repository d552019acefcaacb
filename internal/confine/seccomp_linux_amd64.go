package confine

import "golang.org/x/sys/unix"

var (
	olderModers  = []moder{{unix.SYS_CHMOD, 1}, {unix.SYS_CREAT, 1}, {unix.SYS_MKNOD, 1}}
	olderOpeners = []opener{{unix.SYS_OPEN, 1, 2}}
)
