package eval

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"

	"github.com/fermata-agents/fermata/agent"
)

// Bounds of a data file.
const (
	MaxData = 32 << 20 // bytes, unpacked
	maxRows = 100_000
)

// row is one record of a data file.
type row struct {
	where string // such as "line 3 of gsm8k.jsonl"
	name  string // such as "line-3"
	value any
}

// readRows reads all records of a data file in a directory. The file's name says its format.
// list leads to the list of records in a JSON or YAML file; empty if the file is the list.
func readRows(dir, file, list string) ([]row, error) {
	base := filepath.Base(file)
	raw, err := readData(dir, file)
	if err != nil {
		return nil, agent.Errorf(agent.CodeInvalidInput, "the data file %s can't be read: %w", base, err)
	}
	raw = bytes.TrimPrefix(raw, []byte("\uFEFF"))
	lines := func(read func([]byte) ([]row, error)) ([]row, error) {
		if list != "" {
			return nil, agent.Errorf(agent.CodeInvalidInput, "list is for a JSON or YAML file, and %s has a record on each line", base)
		}
		return read(raw)
	}
	var rows []row
	switch ext := strings.ToLower(filepath.Ext(strings.TrimSuffix(base, ".gz"))); ext {
	case ".jsonl", ".ndjson":
		rows, err = lines(jsonLines)
	case ".csv":
		rows, err = lines(csvLines)
	case ".json":
		var whole any
		if err := number(raw, &whole); err != nil {
			return nil, agent.Errorf(agent.CodeInvalidInput, "%s is not JSON: %w; if it has a value on each line, call it .jsonl", base, err)
		}
		rows, err = items(whole, list)
	case ".yaml", ".yml":
		var whole any
		if err := yaml.Load(raw, &whole, yaml.WithV3Defaults(), yaml.WithPlugin(noAliases)); err != nil {
			return nil, agent.Errorf(agent.CodeInvalidInput, "%s is not YAML: %w", base, err)
		}
		rows, err = items(whole, list)
	default:
		return nil, agent.Errorf(agent.CodeInvalidInput, "%s: a data file is .jsonl, .json, .yaml or .csv, and may end in .gz too", base)
	}
	for i := range rows {
		rows[i].where += " of " + base
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", base, err)
	case len(rows) == 0:
		return nil, agent.Errorf(agent.CodeInvalidInput, "%s has no records", base)
	case len(rows) > maxRows:
		return nil, agent.Errorf(agent.CodeTooLarge, "%s has %d records, and %d are allowed", base, len(rows), maxRows)
	}
	return rows, nil
}

// noAliases refuses aliases: a short file with many would need any amount of memory.
var noAliases = loaderlimits.New(loaderlimits.AliasFunc(func(aliases, _ int) error {
	if aliases > 0 {
		return errors.New("it has an alias; write out what that stands for")
	}
	return nil
}))

// readData reads a regular file within a directory: a pipe would wait for a writer. It unpacks
// gzip. A suite of somebody else must not read other files, and neither may a link in it.
func readData(dir, file string) ([]byte, error) {
	if file = filepath.FromSlash(file); !filepath.IsLocal(file) {
		return nil, errors.New("it lies outside the suite's directory; copy it there")
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, plain(err)
	}
	defer root.Close()
	info, err := root.Stat(file)
	if err != nil {
		return nil, plain(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is no regular file")
	}
	f, err := root.Open(file)
	if err != nil {
		return nil, plain(err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(file, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			return nil, fmt.Errorf("unpacking it: %w", err)
		}
	}
	raw, err := io.ReadAll(io.LimitReader(r, MaxData+1))
	if err == nil && len(raw) > MaxData {
		err = fmt.Errorf("it has more than %d bytes", MaxData)
	}
	return raw, err
}

// plain leaves out the path, which the caller names.
func plain(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// number decodes JSON and keeps numbers as they are written.
func number(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows its value")
	}
	return nil
}

func jsonLines(raw []byte) (rows []row, err error) {
	n := 0
	for line := range bytes.Lines(raw) {
		if n++; len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		r := row{where: fmt.Sprintf("line %d", n), name: fmt.Sprintf("line-%d", n)}
		if err := number(line, &r.value); err != nil {
			return nil, agent.Errorf(agent.CodeInvalidInput, "line %d is not JSON: %w", n, err)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// csvLines reads a file whose first line names the columns.
func csvLines(raw []byte) (rows []row, err error) {
	r := csv.NewReader(bytes.NewReader(raw))
	head, err := r.Read()
	for err == nil {
		var fields []string
		if fields, err = r.Read(); err != nil {
			break
		}
		n, _ := r.FieldPos(0)
		value := map[string]any{}
		for i, name := range head {
			value[strings.TrimSpace(name)] = fields[i]
		}
		rows = append(rows, row{fmt.Sprintf("line %d", n), fmt.Sprintf("line-%d", n), value})
	}
	if !errors.Is(err, io.EOF) {
		return nil, agent.Errorf(agent.CodeInvalidInput, "not CSV: %w", err)
	}
	return rows, nil
}

// items are the records of a list in a document.
func items(whole any, list string) (rows []row, err error) {
	at := "the file"
	if list != "" {
		at = list
		if whole, err = lookUp(whole, list); err != nil {
			return nil, agent.Errorf(agent.CodeInvalidInput, "list: %w", err)
		}
	}
	all, ok := whole.([]any)
	if !ok {
		return nil, agent.Errorf(agent.CodeInvalidInput, "%s is no list of records; list says where one is", at)
	}
	for i, value := range all {
		rows = append(rows, row{fmt.Sprintf("record %d", i+1), fmt.Sprintf("record-%d", i+1), value})
	}
	return rows, nil
}
