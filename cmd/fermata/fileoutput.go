package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/fermata-agents/fermata/agent"
)

// replaceFile puts a file in place when it is complete and durable. Only its owner can read it.
func replaceFile(path string, write func(io.Writer) error) error {
	// In the same folder, because rename is atomic only within one file system.
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.part") // mode 0600
	if err != nil {
		return agent.Errorf(agent.CodeInvalidInput, "the file can't be written: %w", err)
	}
	defer os.Remove(f.Name()) // renamed already if all went well
	if err := write(f); err != nil {
		return errors.Join(err, f.Close())
	}
	// Synced before the rename: after a crash the name must never stand for a partial file.
	if err = errors.Join(f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	// Without this a crash could lose the name although the file was synced.
	if err == nil {
		err = syncFolder(filepath.Dir(path))
	}
	if err != nil {
		return agent.Errorf(agent.CodeNotWritten, "writing %s: %w", path, err)
	}
	return nil
}

// syncFolder makes a file's name durable.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
