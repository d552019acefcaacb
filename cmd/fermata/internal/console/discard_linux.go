package console

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// discard drops what was typed without Enter, if in is a terminal: it belongs to a question that is gone.
func discard(in io.Reader) {
	if f, ok := in.(*os.File); ok {
		_ = unix.IoctlSetInt(int(f.Fd()), unix.TCFLSH, unix.TCIFLUSH) // fails if it is no terminal
	}
}
