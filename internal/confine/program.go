package confine

// shellPath is the shell that every system has.
const shellPath = "/bin/sh"

// Left is a process that could not be ended.
type Left struct {
	PID  int
	Name string
}
