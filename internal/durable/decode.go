package durable

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/rawjson"
)

// Decode decodes one JSON object into a struct and refuses, with the field's path, what
// the wire refuses (docs/wire.md §1): an unknown or duplicate field, a wrong type, null,
// a blank string, a number, duration or time of zero that means the same as none, more than most
// bytes (0 means 64 kB), and more than 32 levels. No data is an empty object. The error's code is
// [agent.CodeInvalidInput] or [agent.CodeTooLarge]. After an error the value is
// undefined.
func Decode(data []byte, into any, most int) error {
	return DecodeAt(math.MaxInt, data, into, most)
}

// DecodeAt decodes as a build of a revision did. A field with the tag since:"N" is
// unknown before revision N. Workflows must use it: a replay has to refuse what the run
// refused.
func DecodeAt(revision int, data []byte, into any, most int) error {
	if most == 0 {
		most = 64 << 10
	}
	return checker{revision: revision, depth: agent.MaxJSONDepth}.decode(data, into, most)
}

// DecodeOwnAt is DecodeAt for what another run of ours wrote, which may quote its model.
// Values may be blank, null or zero, and nested as deep as models write. A refusal would
// lose it: no run sends it again.
func DecodeOwnAt(revision int, data []byte, into any, most int) error {
	return checker{revision: revision, depth: 2 * rawjson.MaxWrittenDepth, own: true}.decode(data, into, most)
}

func (c checker) decode(data []byte, into any, most int) error {
	if len(data) > most {
		return agent.Errorf(agent.CodeTooLarge, "the payload has %d bytes; at most %d are taken", len(data), most)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		data = []byte("{}")
	}
	var tree any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		return agent.Errorf(agent.CodeInvalidInput, "the payload is not JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return agent.Errorf(agent.CodeInvalidInput, "the payload has something behind its JSON object")
	}
	// encoding/json would take the last of two values, and other readers the first.
	if path := rawjson.DuplicateKey(data); path != "" {
		return refuse(path, "is there twice")
	}
	if err := c.check(tree, reflect.TypeOf(into).Elem(), "", 0); err != nil {
		return err
	}
	return unmarshal(data, into)
}

// unmarshal turns an error of encoding/json into one of ours.
func unmarshal(data []byte, into any) error {
	err := json.Unmarshal(data, into)
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong):
		return refuse(jsonPath(wrong.Field), "must be %s, not %s", kindOf(wrong.Type), strings.TrimPrefix(wrong.Value, "number "))
	}
	return refuse("", "can't be read: %v", err)
}

// jsonPath returns a path of encoding/json without the names of embedded Go types, which a payload does
// not have: no field of the wire begins with a capital letter.
func jsonPath(field string) string {
	parts := strings.Split(field, ".")
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p != "" && unicode.IsUpper(rune(p[0])) }), ".")
}

// maxShown limits a field's path and what is wrong with it in an error, in bytes each. The sender chose
// names and values, and the error is recorded and shown.
const maxShown = 512

func refuse(path, format string, args ...any) error {
	path = cut(path, maxShown)
	where := path
	if where == "" {
		where = "the payload"
	}
	return agent.Errorf(agent.CodeInvalidInput, "%s %s", where, cut(fmt.Sprintf(format, args...), maxShown)).WithPath(path)
}

// checker checks JSON as a build of a revision did.
type checker struct {
	revision int
	depth    int  // levels of nesting that are accepted
	own      bool // blank, null and zero values are accepted
	amounts  bool // numbers of zero are accepted: see zeroIsAnAmount
}

// check walks a JSON value beside the type that it is decoded into.
func (c checker) check(v any, t reflect.Type, path string, depth int) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	c.amounts = c.amounts || zeroIsAnAmount[t]
	if depth > c.depth {
		return refuse(path, "is nested more than %d levels deep", c.depth)
	}
	switch v := v.(type) {
	case nil:
		if c.own {
			return nil
		}
		return refuse(path, "is null; leave it out instead")
	case string:
		if strings.TrimSpace(v) == "" && !c.own {
			return refuse(path, "is blank; leave it out instead")
		}
	case []any:
		return c.checkList(v, t, path, depth)
	case map[string]any:
		return c.checkObject(v, t, path, depth)
	}
	return c.checkScalar(v, t, path)
}

// opaque reports whether a type decodes its own JSON. Below it only the depth is checked.
func opaque(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) || t.Kind() == reflect.Interface
}

// abbreviated has the types that decode their own JSON only since a plain value may stand for their
// object. An object has their fields, and no other ones.
var abbreviated = map[reflect.Type]bool{
	reflect.TypeFor[agent.Remedy]():       true,
	reflect.TypeFor[agent.ToolApproval](): true,
}

// readsText reports whether a type decodes a JSON string, and nothing else.
func readsText(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) && !p.Implements(reflect.TypeFor[json.Unmarshaler]())
}

func (c checker) checkScalar(v any, t reflect.Type, path string) error {
	if !opaque(t) { // encoding/json checks these too, but names no index in a list
		_, text := v.(string)
		_, truth := v.(bool)
		switch {
		case text && t.Kind() != reflect.String:
			return refuse(path, "must be %s, not string", kindOf(t))
		case truth && t.Kind() != reflect.Bool:
			return refuse(path, "must be %s, not bool", kindOf(t))
		}
		return nil
	}
	raw, err := json.Marshal(v)
	read := reflect.New(t).Interface()
	var wrong *json.UnmarshalTypeError
	if err == nil {
		err = json.Unmarshal(raw, read)
	}
	switch {
	case readsText(t) && errors.As(err, &wrong):
		return refuse(path, "must be %s, not %s", kindOf(t), wrong.Value)
	case err != nil:
		return refuse(path, "is wrong: %v", err)
	case c.own:
	case noTime(read):
		return refuse(path, isZero) // otherwise it would mean the same as leaving it out
	case tooLittle(v, read):
		return refuse(path, "rounds to zero; the smallest amount is 0.000001")
	}
	return nil
}

// isZero says what is wrong with a zero that would silently mean the default.
const isZero = "is zero; leave it out for the default"

// zeroIsAnAmount has the types in which, and below which, a number of zero means zero.
var zeroIsAnAmount = map[reflect.Type]bool{
	reflect.TypeFor[agent.Price]():   true, // what is free
	reflect.TypeFor[agent.Handoff](): true, // what a run has not used
}

// noTime reports whether a value is a zero duration or time.
func noTime(v any) bool {
	switch v := v.(type) {
	case *agent.Duration:
		return *v == 0
	case *time.Time:
		return v.IsZero()
	}
	return false
}

// tooLittle reports whether an amount of money that is not zero was rounded to zero.
func tooLittle(written, read any) bool {
	u, ok := read.(*agent.USD)
	return ok && *u == 0 && !noNumber(written)
}

// noNumber reports whether a value is the number zero, however it is written.
func noNumber(v any) bool {
	n, ok := v.(json.Number)
	if !ok {
		return false
	}
	f, err := n.Float64()
	return err == nil && f == 0
}

// lost reports whether a value of a field is a zero that means the same as leaving the field out: its
// type is a number, and JSON that is written leaves a zero out.
func (c checker) lost(v any, f reflect.StructField) bool {
	if c.own || c.amounts || !noNumber(v) {
		return false
	}
	switch f.Type.Kind() {
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Float64:
		_, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		return strings.Contains(options, "omit")
	}
	return false
}

// mayBeBlank reports whether a value is a blank text in a field with the tag blank:"default", where
// it means the default.
func mayBeBlank(v any, f reflect.StructField) bool {
	text, ok := v.(string)
	return ok && strings.TrimSpace(text) == "" && f.Type.Kind() == reflect.String && f.Tag.Get("blank") == "default"
}

func (c checker) checkList(list []any, t reflect.Type, path string, depth int) error {
	for i, v := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		var err error
		switch {
		case opaque(t):
			err = c.checkDepth(v, at, depth+1)
		case t.Kind() == reflect.Slice:
			err = c.check(v, t.Elem(), at, depth+1)
		default:
			return refuse(path, "must be %s, not a list", kindOf(t))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c checker) checkObject(object map[string]any, t reflect.Type, path string, depth int) error {
	for _, key := range sortedKeys(object) {
		at := strings.TrimPrefix(path+"."+key, ".")
		var err error
		switch {
		case opaque(t) && !abbreviated[t]:
			// An object that decodes itself may still have our fields.
			if field, ok := c.fieldOf(t, key); ok && c.lost(object[key], field) {
				return refuse(at, isZero)
			}
			err = c.checkDepth(object[key], at, depth+1)
		case t.Kind() == reflect.Map:
			err = c.check(object[key], t.Elem(), at, depth+1)
		case t.Kind() == reflect.Struct:
			field, ok := c.fieldOf(t, key)
			switch {
			case !ok:
				return refuse(at, "is not known here")
			case c.lost(object[key], field):
				return refuse(at, isZero)
			case mayBeBlank(object[key], field):
				continue
			}
			err = c.check(object[key], field.Type, at, depth+1)
		default:
			return refuse(path, "must be %s, not an object", kindOf(t))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkDepth limits the depth of what only somebody else decodes.
func (c checker) checkDepth(v any, path string, depth int) error {
	if below, deep := tooDeep(v, depth, c.depth); deep {
		return refuse(path+below, "is nested more than %d levels deep", c.depth)
	}
	return nil
}

// tooDeep finds a value that is nested too deep. It builds the path only when it has
// found one: a path for each of a million values would take minutes.
func tooDeep(v any, depth, most int) (path string, deep bool) {
	if depth > most {
		return "", true
	}
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			if below, deep := tooDeep(e, depth+1, most); deep {
				return fmt.Sprintf("[%d]%s", i, below), true
			}
		}
	case map[string]any:
		for _, key := range sortedKeys(v) {
			if below, deep := tooDeep(v[key], depth+1, most); deep {
				return "." + key + below, true
			}
		}
	}
	return "", false
}

func sortedKeys(object map[string]any) []string {
	return slices.Sorted(maps.Keys(object)) //workflowcheck:ignore the order of the map is gone after sorting
}

// fieldOf returns a struct's field, by its JSON name.
func (c checker) fieldOf(t reflect.Type, name string) (reflect.StructField, bool) {
	if t.Kind() != reflect.Struct {
		return reflect.StructField{}, false
	}
	for f := range t.Fields() {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && tag == "":
			if found, ok := c.fieldOf(f.Type, name); ok {
				return found, true
			}
		case tag == name && tag != "-":
			return f, c.revision >= since(f)
		}
	}
	return reflect.StructField{}, false
}

func kindOf(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[agent.Duration]():
		return `a duration such as "90s"`
	case t.Kind() == reflect.String, readsText(t):
		return "a string"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "a whole number"
	}
	return "a number"
}

// since returns the revision from which a field is known.
func since(f reflect.StructField) int {
	n, err := strconv.Atoi(f.Tag.Get("since"))
	if err != nil {
		return 0
	}
	return n
}
