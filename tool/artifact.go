package tool

import (
	"context"
	"fmt"

	"github.com/fermata-agents/fermata/agent"
)

// savedText is what a model saves.
type savedText struct {
	Name    string `json:"name" jsonschema:"The artifact's name, like report.md: without folders. Its ending says what the text is"`
	Content string `json:"content" jsonschema:"The whole text"`
}

// SaveArtifact returns the tool save_artifact, with which a model saves a text as an artifact
// ([Call.SaveArtifact]). A worker has it without being given it: an agent has it if its tools name it.
func SaveArtifact() Tool {
	// Made again after a crash: a version exists only once the run has the result.
	return New(agent.SaveArtifactTool, "Saves a text as an artifact: a named result of your work that people and programs can read later. Saving a name again makes its next version; older versions stay.", save, &Options{Attempts: 3})
}

func save(ctx context.Context, c *Call, in savedText) (string, error) {
	if in.Content == "" {
		return "", Refuse("content is empty: give the whole text")
	}
	err := c.SaveArtifact(ctx, agent.FileInput{Name: in.Name, Data: []byte(in.Content)})
	if agent.CodeOf(err) == agent.CodeInvalidInput {
		return "", Refuse("%v", err)
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("The text has %d bytes.", len(in.Content)), nil
}
