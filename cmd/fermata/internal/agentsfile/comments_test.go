package agentsfile

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// moduleRoot is the project's folder; packages are found below it by their import paths.
const (
	moduleRoot = "../../../.."
	modulePath = "github.com/fermata-agents/fermata/"
)

// comments is what the source of packages says of their types, by names such as
// "agent.Limits" and "agent.Limits.Turns", and the constants of each type.
type comments struct {
	texts     map[string]string
	constants map[string][]string // values by type
	values    map[string]string   // by the constant's name
	read      map[string]bool
}

// of reads the package of a type, once.
func (c *comments) of(t *testing.T, of reflect.Type) {
	if c.read[of.PkgPath()] || !strings.HasPrefix(of.PkgPath(), modulePath) {
		return
	}
	c.read[of.PkgPath()] = true
	dir := filepath.Join(moduleRoot, strings.TrimPrefix(of.PkgPath(), modulePath))
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	pkg, _, _ := strings.Cut(of.String(), ".")
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		require.NoError(t, err)
		for _, d := range file.Decls {
			if decl, ok := d.(*ast.GenDecl); ok {
				c.declared(pkg, decl)
			}
		}
	}
}

// declared keeps the comments of types and their fields, and the values of constants.
func (c *comments) declared(pkg string, decl *ast.GenDecl) {
	for _, spec := range decl.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			doc := s.Doc
			if doc == nil {
				doc = decl.Doc
			}
			name := pkg + "." + s.Name.Name
			c.texts[name] = joined(doc)
			if structure, ok := s.Type.(*ast.StructType); ok {
				for _, f := range structure.Fields.List {
					for _, field := range f.Names {
						c.texts[name+"."+field.Name] = joined(f.Doc)
					}
				}
			}
		case *ast.ValueSpec:
			c.constant(pkg, s)
		}
	}
}

func (c *comments) constant(pkg string, s *ast.ValueSpec) {
	if len(s.Values) != 1 {
		return
	}
	value, ok := s.Values[0].(*ast.BasicLit)
	if !ok || value.Kind != token.STRING {
		return
	}
	text, _ := strconv.Unquote(value.Value)
	c.values[pkg+"."+s.Names[0].Name] = text
	if of, ok := s.Type.(*ast.Ident); ok {
		c.constants[pkg+"."+of.Name] = append(c.constants[pkg+"."+of.Name], text)
	}
}

func joined(doc *ast.CommentGroup) string { return strings.Join(strings.Fields(doc.Text()), " ") }

var (
	link    = regexp.MustCompile(`\[([A-Za-z.]+)\]`)
	verb    = regexp.MustCompile(`^(is|are|says (what|how|who|whether|when)) `)
	nothing = regexp.MustCompile(`\b(zero|empty|nil) (means|registers|sends)`)
	nought  = regexp.MustCompile(`\b(Zero|Empty|Nil) (means|registers|sends)`)
)

// text is a comment in the words of the agents file: without the name of the field or type
// that it begins with, with keys and values for Go's names, and with what leaving a key out
// means for the zero value. A link to another name of Go's is a fault: the file has none.
func (c *comments) text(t *testing.T, of reflect.Type, field string) string {
	c.of(t, of)
	name := of.String()
	if field != "" {
		name += "." + field
	}
	text := c.texts[name]
	require.NotEmpty(t, text, "%s has no comment: say in a sentence what it is", name)
	first, rest, _ := strings.Cut(text, " ")
	require.Equal(t, name[strings.LastIndex(name, ".")+1:], first, "the comment of %s begins with its name", name)
	if found := verb.FindStringSubmatch(rest); found != nil {
		rest = strings.TrimSpace(found[2] + " " + rest[len(found[0]):])
	}
	pkg, _, _ := strings.Cut(name, ".")
	text = link.ReplaceAllStringFunc(rest, func(ref string) string {
		to := ref[1 : len(ref)-1]
		if value := c.values[pkg+"."+to]; value != "" {
			return value
		}
		key, err := keyOf(of, to[strings.LastIndex(to, ".")+1:])
		require.NoError(t, err, "%s: %s", name, ref)
		return key
	})
	text = nought.ReplaceAllString(nothing.ReplaceAllString(text, "left out $2"), "Left out $2")
	return string(unicode.ToUpper(rune(text[0]))) + text[1:]
}

// keyOf is the key of a field of Go's.
func keyOf(of reflect.Type, field string) (string, error) {
	f, ok := of.FieldByName(field)
	if !ok {
		return "", fmt.Errorf("%s is no field of %s: %w", field, of, fs.ErrNotExist)
	}
	key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return key, nil
}

// sentence is the first sentence of a text.
func sentence(text string) string {
	for i := range text {
		if text[i] == '.' && (i+1 == len(text) || text[i+1] == ' ' && i+2 < len(text) && unicode.IsUpper(rune(text[i+2]))) {
			return text[:i+1]
		}
	}
	return text
}
