package confine

// shellPath is the shell that every Unix has.
const shellPath = "/bin/sh"

// Survivor is a process that could not be ended.
type Survivor struct {
	PID  int
	Name string
}
