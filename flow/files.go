package flow

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/play"
	"github.com/fermata-agents/fermata/internal/value"
)

// WithFiles is a value with files: images, PDFs and others, which are in the store, and are known
// here by name, type, size and digest. It can be
//
//   - the In of a flow: the input, and the files of the start, or those that a model or a flow gives
//     to this one;
//   - the Out of [Tool], [Do] and [Agent]: the result, and the files that the tool has shown, that the
//     code has added with [tool.Call.AddFile], or that the agent's answer gives back;
//   - the Out of a flow: the result, and files of its input or its steps that the run gives back.
//
// Files are the same each time that the function runs, and in a fork. [AgentOptions] gives them to an
// agent.
type WithFiles[T any] struct {
	Value T
	Files []agent.File
}

// takesFiles is a pointer to a WithFiles.
type takesFiles interface {
	take(text string, files []agent.File) error
	schema() (json.RawMessage, error)
	isText() bool
	inner() reflect.Type
}

func (w *WithFiles[T]) take(text string, files []agent.File) (err error) {
	w.Files = files
	w.Value, err = read[T](text, files)
	return err
}

func (w *WithFiles[T]) schema() (json.RawMessage, error) { return schemaOf[T](nil) }
func (w *WithFiles[T]) isText() bool                     { return isText[T]() }
func (w *WithFiles[T]) inner() reflect.Type              { return inner[T]() }

// withFiles is a WithFiles.
type withFiles interface {
	done() (play.Done, error)
	value() any
}

func (w WithFiles[T]) value() any { return w.Value }

func (w WithFiles[T]) done() (play.Done, error) {
	d, err := done(w.Value)
	d.Files = w.Files
	return d, err
}

// read is [value.Read], with files where the type takes them.
func read[T any](text string, files []agent.File) (v T, err error) {
	if w, ok := any(&v).(takesFiles); ok {
		err = w.take(text, files)
		return v, err
	}
	return value.Read[T](text)
}

// isText is [value.IsText], with or without files.
func isText[T any]() bool {
	if w, ok := any(new(T)).(takesFiles); ok {
		return w.isText()
	}
	return value.IsText[T]()
}

// inner returns the type of a value, without files.
func inner[T any]() reflect.Type {
	if w, ok := any(new(T)).(takesFiles); ok {
		return w.inner()
	}
	return reflect.TypeFor[T]()
}

// decodeStep reads the result of a step. Files are left out of a result for which the run had no room:
// that is an error only where the function reads them.
func decodeStep[Out any](r play.Result, text string) (Out, error) {
	if _, ok := any(new(Out)).(takesFiles); ok && r.LeftFiles > 0 {
		var none Out
		return none, &StepError{Path: r.Path, Tool: r.Tool, Status: agent.CallFailed, Code: agent.CodeTooLarge, Text: fmt.Sprintf("%d of its files are not kept: too many wait to be stored, or they are not this session's", r.LeftFiles)}
	}
	out, err := read[Out](text, r.Files)
	if err != nil {
		return out, misfit(r.Path, err)
	}
	return out, nil
}
