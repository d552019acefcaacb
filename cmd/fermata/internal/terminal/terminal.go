package terminal

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

// Open returns the outputs of a process. If they share a terminal, each knows of the
// other's lines.
func Open(stdout, stderr io.Writer) (out, err *Output) {
	ascii, screen := onlyASCII(), screenOf(stdout, stderr)
	return newOutput(stdout, ascii, screen), newOutput(stderr, ascii, screen)
}

func newOutput(stream io.Writer, ascii bool, screen *untrusted.Screen) *Output {
	o := &Output{ASCII: ascii, to: stream}
	if Is(stream) {
		o.screen = screen
	}
	return o
}

// Is reports whether a stream is a terminal.
func Is(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// screenOf returns the terminal that output goes to; nil if there is none.
func screenOf(streams ...any) *untrusted.Screen {
	for _, stream := range streams {
		if Is(stream) {
			return untrusted.NewScreen(func() int { return width(stream) })
		}
	}
	return nil
}

// width returns a terminal's width in columns, or zero if it is unknown.
func width(stream any) int {
	// An unknown width turns the wrapping off.
	wide, _, _ := term.GetSize(int(stream.(*os.File).Fd()))
	return wide
}

// Terminal reports whether the output is a terminal.
func (o *Output) Terminal() bool { return Is(o.to) }

// Look returns the width of the output's terminal in columns, and whether it shows
// colours. Both are zero if the output is not a terminal.
func (o *Output) Look() (columns int, color bool) {
	if !o.Terminal() {
		return 0, false
	}
	return width(o.to), os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// onlyASCII reports whether the locale has only ASCII. Without a locale it reports false.
func onlyASCII() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := os.Getenv(name); locale != "" {
			// The first one that is set counts, as in libc.
			return locale == "C" || locale == "POSIX"
		}
	}
	return false
}
