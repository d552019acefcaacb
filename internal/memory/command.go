package memory

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
)

// Spec is the tool as the model sees it. A call is made again after a crash: its key keeps it from
// having a second effect.
var Spec = agent.ToolSpec{
	Name: agent.MemoryTool, Attempts: 3,
	Description: "Keeps text files under /memories, which you have in every session. Look at /memories before you begin, and write down what later sessions need. " +
		"Commands: view (a file, or the files of a folder), create (a new file), str_replace, insert (after a line; 0 is the beginning), delete, rename. " +
		"A view shows each file's version. Files may change while you work, in another session: give the version that you saw as version, and nothing newer is lost.",
	Input: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string","enum":["view","create","str_replace","insert","delete","rename"],"description":"What to do"},` +
		`"path":{"type":"string","description":"A file or a folder, like /memories/notes.md"},` +
		`"view_range":{"type":"array","items":{"type":"integer"},"description":"view: the first and the last line; -1 is the end"},` +
		`"file_text":{"type":"string","description":"create: the whole text"},` +
		`"old_str":{"type":"string","description":"str_replace: the text to replace; it has to be in the file once"},` +
		`"new_str":{"type":"string","description":"str_replace: what replaces it"},` +
		`"insert_line":{"type":"integer","description":"insert: the line after which the text goes"},` +
		`"insert_text":{"type":"string","description":"insert: the text"},` +
		`"old_path":{"type":"string","description":"rename: the file or folder"},"new_path":{"type":"string","description":"rename: its new path"},` +
		`"version":{"type":"integer","description":"str_replace, insert and delete: the version that you have seen"}},"required":["command"],"additionalProperties":false}`),
}

// Command is one call of the tool.
type Command struct {
	Command    string `json:"command"`
	Path       string `json:"path"`
	ViewRange  []int  `json:"view_range"`
	FileText   string `json:"file_text"`
	OldStr     string `json:"old_str"`
	NewStr     string `json:"new_str"`
	InsertLine int    `json:"insert_line"`
	InsertText string `json:"insert_text"`
	OldPath    string `json:"old_path"`
	NewPath    string `json:"new_path"`
	Version    int64  `json:"version"`
}

// Run carries out a call of the tool. key makes a change at most once, and session is who makes it.
// Errors are [agent.CodeInvalidInput] and [agent.CodeTooLarge], whose messages are for the model,
// and those of the store.
func Run(ctx context.Context, m *store.Memory, arguments json.RawMessage, key, session string) (string, error) {
	var c Command
	if err := json.Unmarshal(arguments, &c); err != nil {
		return "", agent.Errorf(agent.CodeInvalidInput, "the arguments do not fit: %w", err)
	}
	for _, p := range []*string{&c.Path, &c.OldPath, &c.NewPath} {
		if *p == "" {
			continue
		}
		var err error
		if *p, err = store.CheckMemoryPath(*p); err != nil {
			return "", err
		}
	}
	if missing := c.missing(); missing != "" {
		return "", agent.Errorf(agent.CodeInvalidInput, "%s needs %s", c.Command, missing)
	}
	if c.Command == "view" {
		return c.view(ctx, m)
	}
	edit := map[string]func(context.Context, *store.MemoryEdit) (string, error){
		"create": c.create, "str_replace": c.replace, "insert": c.insert, "rename": c.rename,
		"delete": func(ctx context.Context, e *store.MemoryEdit) (string, error) { return c.delete(e, session) },
	}[c.Command]
	if edit == nil {
		return "", agent.Errorf(agent.CodeInvalidInput, "the command %.50q is not known; there are view, create, str_replace, insert, delete and rename", c.Command)
	}
	return m.Change(ctx, store.MemoryChange{Key: key, Session: session, Edit: edit})
}

// missing returns the argument that the command lacks; empty if it has all.
func (c Command) missing() string {
	switch {
	case c.Command == "rename" && (c.OldPath == "" || c.NewPath == ""):
		return "old_path and new_path"
	case c.Command == "rename":
		return ""
	case c.Path == "":
		return "path"
	case c.Command == "str_replace" && c.OldStr == "":
		return "old_str"
	case c.Command == "insert" && c.InsertText == "":
		return "insert_text"
	}
	return ""
}

func (c Command) create(ctx context.Context, e *store.MemoryEdit) (string, error) {
	if err := free(e, c.Path); err != nil {
		return "", err
	}
	return "File created successfully at: " + c.Path, e.Write(ctx, c.Path, c.FileText)
}

// free returns an error if a path can't be that of a new file.
func free(e *store.MemoryEdit, path string) error {
	if path == store.MemoryRoot {
		return agent.Errorf(agent.CodeInvalidInput, "%s is the folder of all files: name a file in it", path)
	}
	for _, f := range e.Files() {
		switch {
		case f.Path == path:
			return agent.Errorf(agent.CodeInvalidInput, "File %s already exists (version %d): view it, and change it with str_replace or insert", path, f.Version)
		case strings.HasPrefix(f.Path, path+"/"):
			return agent.Errorf(agent.CodeInvalidInput, "%s already exists, and is a folder", path)
		case strings.HasPrefix(path, f.Path+"/"):
			return agent.Errorf(agent.CodeInvalidInput, "%s is a file, and no folder", f.Path)
		}
	}
	return nil
}

// open returns a file to be edited, and its content.
func (c Command) open(ctx context.Context, e *store.MemoryEdit) (string, error) {
	f, ok := e.Find(c.Path)
	switch {
	case !ok:
		return "", absent(c.Path)
	case c.Version > 0 && f.Version > c.Version:
		return "", agent.Errorf(agent.CodeInvalidInput, "%s was changed since: it has version %d, not %d. View it again", c.Path, f.Version, c.Version)
	}
	return e.Read(ctx, f)
}

func absent(path string) error {
	return agent.Errorf(agent.CodeInvalidInput, "The path %s does not exist. Please provide a valid path.", path)
}

func (c Command) replace(ctx context.Context, e *store.MemoryEdit) (string, error) {
	text, err := c.open(ctx, e)
	if err != nil {
		return "", err
	}
	switch n := strings.Count(text, c.OldStr); {
	case n == 0:
		return "", agent.Errorf(agent.CodeInvalidInput, "No replacement was performed, old_str did not appear verbatim in %s.", c.Path)
	case n > 1:
		return "", agent.Errorf(agent.CodeInvalidInput, "No replacement was performed. There are %d occurrences of old_str in %s. Please ensure it is unique", n, c.Path)
	}
	return "The memory file has been edited.", e.Write(ctx, c.Path, strings.Replace(text, c.OldStr, c.NewStr, 1))
}

func (c Command) insert(ctx context.Context, e *store.MemoryEdit) (string, error) {
	text, err := c.open(ctx, e)
	if err != nil {
		return "", err
	}
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	if c.InsertLine < 0 || c.InsertLine > len(lines) {
		return "", agent.Errorf(agent.CodeInvalidInput, "Invalid `insert_line` parameter: %d. It should be within the range of lines of the file: [0, %d]", c.InsertLine, len(lines))
	}
	before, added := strings.Join(lines[:c.InsertLine], ""), c.InsertText
	if before != "" && !strings.HasSuffix(before, "\n") {
		before += "\n"
	}
	if !strings.HasSuffix(added, "\n") {
		added += "\n"
	}
	return fmt.Sprintf("The file %s has been edited.", c.Path), e.Write(ctx, c.Path, before+added+strings.Join(lines[c.InsertLine:], ""))
}

// delete deletes a file, or a folder with its files. What another session has changed is deleted only
// by who has seen it.
func (c Command) delete(e *store.MemoryEdit, session string) (string, error) {
	found := below(e.Files(), c.Path)
	if len(found) == 0 {
		return "", absent(c.Path)
	}
	newest := int64(0)
	theirs := false
	for _, f := range found {
		newest = max(newest, f.Version)
		theirs = theirs || f.Session != session && f.Version > c.Version
	}
	if theirs || c.Version > 0 && newest > c.Version {
		return "", agent.Errorf(agent.CodeInvalidInput, "Not deleted: %s was changed in another session, or since you saw it. View it, and delete it with \"version\": %d", c.Path, newest)
	}
	for _, f := range found {
		e.Remove(f.Path)
	}
	return "Successfully deleted " + c.Path, nil
}

// below returns the file with a path, or the files of the folder with it.
func below(files []store.MemoryFile, path string) (found []store.MemoryFile) {
	for _, f := range files {
		if f.Path == path || strings.HasPrefix(f.Path, path+"/") {
			found = append(found, f)
		}
	}
	return found
}

func (c Command) rename(_ context.Context, e *store.MemoryEdit) (string, error) {
	found := below(e.Files(), c.OldPath)
	switch {
	case len(found) == 0 || c.OldPath == store.MemoryRoot:
		return "", absent(c.OldPath)
	case strings.HasPrefix(c.NewPath+"/", c.OldPath+"/"):
		return "", agent.Errorf(agent.CodeInvalidInput, "%s can't become a part of itself", c.OldPath)
	}
	if err := free(e, c.NewPath); err != nil {
		return "", err
	}
	for _, f := range found {
		to, err := store.CheckMemoryPath(c.NewPath + strings.TrimPrefix(f.Path, c.OldPath))
		if err != nil {
			return "", err
		}
		e.Rename(f.Path, to)
	}
	return fmt.Sprintf("Successfully renamed %s to %s", c.OldPath, c.NewPath), nil
}
