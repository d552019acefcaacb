package disk

import "github.com/fermata-agents/fermata/agent"

// low is how many bytes must be free where the store and the embedded server write. With
// less, SQLite does not answer, and callers only see a timeout.
const low = 1 << 20

// Free returns how many bytes an ordinary user may still write in a folder. Tests replace
// it.
var Free = Measure

// Measure asks the system how much is free; it is [Free] outside of tests.
func Measure(dir string) (int64, error) { return statfs(dir) }

// Folder is a folder that the server or the store writes to on this machine.
type Folder struct {
	// What is what the folder contains: "store" or "data directory".
	What string
	Path string
}

// CheckSpace returns [agent.CodeStoreUnavailable] if the disk of the folder is full. If
// that is unknown it returns nil: the writes will tell.
func (f Folder) CheckSpace() error {
	free, err := Free(f.Path)
	if err != nil || free >= low {
		return nil
	}
	return agent.Errorf(agent.CodeStoreUnavailable, "the disk of the %s %s is full, it has %d bytes left: free some space, and waiting work continues", f.What, f.Path, free)
}
