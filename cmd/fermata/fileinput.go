package main

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/files"
)

func fileFlag(cmd *cobra.Command, paths *[]string) {
	cmd.Flags().StringArrayVar(paths, "file", nil, "send this file with the text: an image, a PDF, or text; may be repeated")
}

// fileInputs reads the files that a message shows.
func fileInputs(paths []string) (list []fermata.FileInput, err error) {
	if len(paths) > agent.MaxFiles { // before they are read
		return nil, agent.Errorf(agent.CodeInvalidInput, "%d files are named; a message has at most %d", len(paths), agent.MaxFiles)
	}
	for _, path := range paths {
		data, err := files.Read(path, agent.MaxFile)
		if err != nil {
			return nil, agent.Errorf(agent.CodeInvalidInput, "a file can't be read: %w", err)
		}
		list = append(list, fermata.FileInput{Name: filepath.Base(path), Data: data})
	}
	return list, nil
}
