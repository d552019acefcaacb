package confine

import "golang.org/x/sys/unix"

var (
	olderModeCalls = []modeCall{{unix.SYS_CHMOD, 1}, {unix.SYS_CREAT, 1}, {unix.SYS_MKNOD, 1}}
	olderOpenCalls = []openCall{{unix.SYS_OPEN, 1, 2}}
)
