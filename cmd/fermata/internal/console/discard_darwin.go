package console

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// reads is FREAD of <sys/fcntl.h>.
const reads = 1

// discard drops what was typed without Enter, if in is a terminal: it belongs to a question that is gone.
func discard(in io.Reader) {
	if f, ok := in.(*os.File); ok {
		_ = unix.IoctlSetPointerInt(int(f.Fd()), unix.TIOCFLUSH, reads) // fails if it is no terminal
	}
}
