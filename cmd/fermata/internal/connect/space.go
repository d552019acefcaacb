package connect

import (
	"github.com/fermata-agents/fermata/cmd/fermata/internal/disk"
	"github.com/fermata-agents/fermata/store"
)

// dataFolder is what messages call the data directory of the embedded server.
const dataFolder = "data directory"

// Folders returns the folders of a command and its server; s is nil if no server answers.
func (c *Connector) Folders(s *Server) (list []disk.Folder) {
	dir, err := c.DataDir()
	// Without an answering server, its lock shows whether it runs on this machine.
	if err == nil && (s == nil && hasServer(dir) || s != nil && s.Embedded != nil) {
		list = append(list, disk.Folder{What: dataFolder, Path: dir})
	}
	return append(list, StoreFolders(c.openedStore.Encrypted)...)
}

// StoreFolders returns the folder of a store, if it has one.
func StoreFolders(s *store.Encrypted) []disk.Folder {
	if s == nil {
		return nil
	}
	if d, ok := s.Inner().(*store.Dir); ok {
		return []disk.Folder{{What: "store", Path: d.Root()}}
	}
	return nil
}

// warnFull warns of full disks: a command would only see a timeout.
func (c *Connector) warnFull(all ...disk.Folder) {
	for _, f := range all {
		if err := f.CheckSpace(); err != nil {
			c.Notify("fermata: warning: %v", err)
		}
	}
}
