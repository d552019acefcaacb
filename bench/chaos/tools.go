package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/tool"
)

// desk is the outside world, in a folder: a journal of effects, which every worker
// appends to, and a file for each effect that is made by key.
type desk struct{ dir string }

// args are every tool's arguments: a number that tells calls apart.
type args struct {
	N int `json:"n"`
}

// The marks in the journal: before an effect, and the effect.
const (
	markBegin = "begin"
	markDone  = "done"
)

func (d *desk) tools() []tool.Tool {
	return []tool.Tool{
		tool.New(payTool, "pays", d.pay, nil),
		tool.New(wireTool, "wires money", d.pay, nil),
		tool.New(bookTool, "books", d.book, &tool.Options{Attempts: 5}),
		tool.New(ponderTool, "thinks for long", ponder, &tool.Options{ReadOnly: true}),
		tool.New(lookTool, "looks", func(context.Context, *tool.Call, args) (string, error) { return "seen", nil }, &tool.Options{Local: true}),
	}
}

// pay has its effect when its line is in the journal. A call that is cancelled before has
// none.
func (d *desk) pay(ctx context.Context, c *tool.Call, _ args) (string, error) {
	if err := d.write(markBegin, c); err != nil {
		return "", err
	}
	if !pause(ctx, chance(c.Key, 60*time.Millisecond)) {
		return "", errors.New("given up before it was paid")
	}
	if err := d.write(markDone, c); err != nil {
		return "", err
	}
	// The effect has happened; a kill from here on makes the outcome unknown.
	pause(ctx, chance(c.Key+" after", 60*time.Millisecond))
	return "paid", nil
}

// book has its effect once for each key, however often it is called. Some first attempts
// fail, before or after the effect.
func (d *desk) book(ctx context.Context, c *tool.Call, _ args) (string, error) {
	if err := d.write(markBegin, c); err != nil {
		return "", err
	}
	luck := chance(c.Key+" luck", 10)
	if c.Attempt == 1 && luck == 0 {
		return "", errors.New("the office is closed")
	}
	// O_EXCL makes the key's file the effect: a second call finds it and does nothing.
	f, err := os.OpenFile(d.booking(c.Key), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		err = f.Close()
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	if c.Attempt == 1 && luck == 1 {
		return "", errors.New("the line was cut")
	}
	pause(ctx, chance(c.Key, 40*time.Millisecond))
	return "booked", nil
}

func ponder(ctx context.Context, c *tool.Call, _ args) (string, error) {
	if !pause(ctx, chance(c.Key, 4*time.Second)) {
		return "half a thought", nil
	}
	return "a thought", nil
}

func (d *desk) booking(key string) string {
	return filepath.Join(d.dir, "booked", strings.ReplaceAll(key, "/", "_"))
}

func (d *desk) booked(key string) bool {
	_, err := os.Stat(d.booking(key))
	return err == nil
}

func (d *desk) journal() string { return filepath.Join(d.dir, "journal") }

// open creates the folder.
func (d *desk) open() error { return os.MkdirAll(filepath.Join(d.dir, "booked"), 0o700) }

// write appends one line, and returns when it is on disk.
func (d *desk) write(mark string, c *tool.Call) error {
	f, err := os.OpenFile(d.journal(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := fmt.Fprintln(f, mark, c.Key, c.Tool); err != nil {
		return err
	}
	return f.Sync()
}

// entries are the journal's entries of one call.
type entries struct {
	tool        string
	begun, done int
}

// read reads the journal, by key.
func (d *desk) read() (map[string]entries, error) {
	f, err := os.Open(d.journal())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all := map[string]entries{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var mark, key, name string
		if n, err := fmt.Sscan(lines.Text(), &mark, &key, &name); n != 3 {
			return nil, fmt.Errorf("the journal's line %q: %w", lines.Text(), err)
		}
		e := all[key]
		e.tool = name
		switch mark {
		case markBegin:
			e.begun++
		case markDone:
			e.done++
		}
		all[key] = e
	}
	return all, nil
}

// chance returns a number below another one, always the same for the same words.
func chance[N ~int | ~int64](words string, below N) N {
	h := fnv.New32a()
	h.Write([]byte(words))
	return N(int64(h.Sum32()) % int64(below))
}

// pause waits, and reports false if the context ended first.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
