package confine

// Left is a process that could not be ended.
type Left struct {
	PID  int
	Name string
}
