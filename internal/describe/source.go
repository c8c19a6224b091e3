// Package describe derives JSON Schemas and prose from Go types, their doc comments and the constraints
// beside them. It reads source files, so that only generators that tests run import it.
//
// A field has its constraints in a tag. The values of min, max, pattern, const and default are constant
// expressions of its package:
//
//	TimeoutMs int64 `json:"timeoutMs" schema:"min=1,max=MaxTimeoutMs"`
//
//	min, max          of a number, of the length of a string, or of the number of elements
//	pattern, format   of a string
//	is                the name of a component, like EventID
//	const, default    the value
//	enum, not         the values, as in file|url|blob, or a constant with them; the values that are not allowed
//	type              of any JSON, as in object|array
//	unique            elements are distinct
//	media             the media type of the content of a string
//	id                no constraint: an id of the same log, see event.Event.MapIDs
//	items.X           X of the elements of an array or the values of a map; names.X: X of the names of a map
//
// Rules between fields, or the schema of a type with its own MarshalJSON, are directives in the doc comment
// of the type. In them, "$Name" is the value of a constant, and a $ref names a type or a component:
//
//	//schema:rules {"oneOf":[{"required":["value"]},{"required":["error"]}]}
//
// A type of strings with constants has these values, described by their comments. The directive doc:effect of an event
// is its row in a table of docs/events.md.
package describe

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Source is the type-checked source of packages.
type Source struct {
	fset     *token.FileSet
	packages map[string]*types.Package
	docs     map[token.Pos]*ast.CommentGroup // by the name declared
	lines    map[token.Pos]*ast.CommentGroup // on the line of the name
}

// Load reads packages by their folders below the root of the module. It reads no others: of those that they
// import, it knows time.Time and json.RawMessage only.
func Load(root string, folders ...string) (*Source, error) {
	s := &Source{
		fset: token.NewFileSet(), packages: map[string]*types.Package{},
		docs: map[token.Pos]*ast.CommentGroup{}, lines: map[token.Pos]*ast.CommentGroup{},
	}
	for _, folder := range folders {
		if err := s.load(root, folder, folders); err != nil {
			return nil, err
		}
	}
	return s, nil
}

const module = "github.com/seed-9ed7edd4/chronicle/"

func (s *Source) load(root, folder string, folders []string) error {
	if s.packages[module+folder] != nil {
		return nil
	}
	names, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	if err != nil || len(names) == 0 {
		return fmt.Errorf("load %s: no Go files: %w", folder, err)
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(s.fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("load %s: %w", folder, err)
		}
		files = append(files, file)
		ast.Inspect(file, s.collect)
	}
	config := types.Config{
		IgnoreFuncBodies: true,
		Error:            func(error) {}, // of names in packages that are not loaded
		Importer: importer(func(path string) (*types.Package, error) {
			if other, ok := strings.CutPrefix(path, module); ok && slices.Contains(folders, other) {
				err := s.load(root, other, folders)
				return s.packages[path], err
			}
			return other(path), nil
		}),
	}
	p, _ := config.Check(module+folder, s.fset, files, nil)
	s.packages[module+folder] = p
	return nil
}

type importer func(path string) (*types.Package, error)

func (f importer) Import(path string) (*types.Package, error) { return f(path) }

// other returns a package of which only the types that have a schema are known.
func other(path string) *types.Package {
	p := types.NewPackage(path, filepath.Base(path))
	for name, underlying := range map[string]types.Type{
		"time.Time": types.NewStruct(nil, nil), "encoding/json.RawMessage": types.NewSlice(types.Typ[types.Byte]),
	} {
		if name, ok := strings.CutPrefix(name, path+"."); ok {
			object := types.NewTypeName(token.NoPos, p, name, nil)
			types.NewNamed(object, underlying, nil)
			p.Scope().Insert(object)
		}
	}
	p.MarkComplete()
	return p
}

func (s *Source) collect(node ast.Node) bool {
	switch node := node.(type) {
	case *ast.GenDecl:
		for _, spec := range node.Specs {
			if named, ok := spec.(*ast.TypeSpec); ok && node.Doc != nil {
				s.docs[named.Name.Pos()] = node.Doc
			}
		}
	case *ast.Field:
		s.add(node.Names, node.Doc, node.Comment)
	case *ast.ValueSpec:
		s.add(node.Names, node.Doc, node.Comment)
	case *ast.FuncDecl:
		s.add([]*ast.Ident{node.Name}, node.Doc, nil)
	}
	return true
}

func (s *Source) add(names []*ast.Ident, doc, line *ast.CommentGroup) {
	for _, name := range names {
		s.docs[name.Pos()], s.lines[name.Pos()] = doc, line
	}
}

// Named returns a named type of the packages; nil if there is none.
func (s *Source) Named(path, name string) *types.Named {
	p := s.packages[path]
	if p == nil || p.Scope().Lookup(name) == nil {
		return nil
	}
	named, _ := p.Scope().Lookup(name).Type().(*types.Named)
	return named
}

// Method returns a method of a named type, also an unexported one.
func (s *Source) Method(named *types.Named, name string) types.Object {
	method, _, _ := types.LookupFieldOrMethod(types.NewPointer(named), true, named.Obj().Pkg(), name)
	return method
}

// Reflected returns the source of a type.
func (s *Source) Reflected(t reflect.Type) types.Type {
	switch {
	case t.Name() != "":
		if named := s.Named(t.PkgPath(), t.Name()); named != nil {
			return named
		}
	case t.Kind() == reflect.Slice:
		return types.NewSlice(s.Reflected(t.Elem()))
	}
	panic(fmt.Sprintf("describe %s: its package is not loaded", t))
}

// Value evaluates a constant expression in the package of an object.
func (s *Source) Value(at types.Object, expression string) constant.Value {
	result, err := types.Eval(s.fset, at.Pkg(), token.NoPos, expression)
	if err != nil || result.Value == nil {
		panic(fmt.Sprintf("describe %s: %q is no constant expression: %v", at.Name(), expression, err))
	}
	return result.Value
}

// Constants returns the constants of a type, in the order of the source.
func Constants(named *types.Named) (values []*types.Const) {
	scope := named.Obj().Pkg().Scope()
	for _, name := range scope.Names() {
		if c, ok := scope.Lookup(name).(*types.Const); ok && types.Identical(c.Type(), named) {
			values = append(values, c)
		}
	}
	slices.SortFunc(values, func(a, b *types.Const) int { return int(a.Pos() - b.Pos()) })
	return values
}

const directive = "//schema:rules "

// rules returns the directives of a type.
func (s *Source) rules(named *types.Named) (rules []string) {
	for _, rule := range s.Directives(named, directive) {
		rules = append(rules, s.constants(named.Obj(), rule))
	}
	return rules
}

// Directives returns the rest of the lines of a doc comment that begin with a prefix.
func (s *Source) Directives(named *types.Named, prefix string) (found []string) {
	if doc := s.docs[named.Obj().Pos()]; doc != nil {
		for _, line := range doc.List {
			if rest, ok := strings.CutPrefix(line.Text, prefix); ok {
				found = append(found, rest)
			}
		}
	}
	return found
}

var constantName = regexp.MustCompile(`"\$([A-Za-z]\w*)"`)

func (s *Source) constants(at types.Object, rule string) string {
	return constantName.ReplaceAllStringFunc(rule, func(name string) string {
		if name == `"$ref"` {
			return name
		}
		return s.Value(at, name[2:len(name)-1]).ExactString()
	})
}

var (
	link    = regexp.MustCompile(`\[\*?([A-Za-z]\w*)(?:\.([A-Za-z]\w*))?(?:\.([A-Za-z]\w*))?\]`)
	spaces  = regexp.MustCompile(`\s+`)
	absence = regexp.MustCompile(`\bnil\b|\bunset\b|""`)
	absent1 = regexp.MustCompile(`\bNil\b|\bUnset\b`)
)

// Doc returns the doc comment of a type, field, constant or function as prose for users of the JSON: without the
// name at its beginning, with the values of constants instead of links to them, and with the JSON names of fields.
// It is "" without a comment.
func (s *Source) Doc(at types.Object, fields map[string]string) string {
	var parts []string
	for _, comment := range []*ast.CommentGroup{s.docs[at.Pos()], s.lines[at.Pos()]} {
		if text := strings.TrimSpace(spaces.ReplaceAllString(comment.Text(), " ")); text != "" {
			parts = append(parts, text)
		}
	}
	text := strings.Join(parts, "; ")
	if rest, ok := strings.CutPrefix(text, at.Name()+" "); ok && !strings.HasPrefix(rest, "and ") {
		for _, verb := range []string{"is ", "are "} {
			rest = strings.TrimPrefix(rest, verb)
		}
		text = rest
	}
	text = link.ReplaceAllStringFunc(text, func(found string) string { return s.linked(at.Pkg(), link.FindStringSubmatch(found)[1:]) })
	text = absent1.ReplaceAllString(absence.ReplaceAllString(text, "absent"), "Absent")
	for _, name := range slices.SortedFunc(maps.Keys(fields), func(a, b string) int { return len(b) - len(a) }) {
		if name == strings.ToUpper(name) {
			continue // such as URL, which is a word
		}
		text = regexp.MustCompile("\\b"+name+"\\b").ReplaceAllStringFunc(text, func(string) string { return "`" + fields[name] + "`" })
	}
	return Capitalised(text)
}

// linked renders a doc link by its names: [Type], [Const], [package.Type], [Type.Field].
func (s *Source) linked(in *types.Package, names []string) string {
	for _, imported := range in.Imports() {
		if imported.Name() == names[0] && s.packages[imported.Path()] != nil {
			in, names = s.packages[imported.Path()], names[1:]
			break
		}
	}
	switch found := in.Scope().Lookup(names[0]).(type) {
	case *types.Const:
		if found.Val().Kind() == constant.String {
			return "`" + constant.StringVal(found.Val()) + "`"
		}
		n, _ := constant.Int64Val(constant.ToInt(found.Val()))
		return number(n)
	case *types.TypeName:
		if tag := in.Scope().Lookup("Tag" + names[0]); tag != nil && names[1] == "" {
			return names[0] + "Event"
		}
	}
	return strings.TrimRight(strings.Join(names, "."), ".")
}

// number groups the digits of n, or has the unit KiB or MiB.
func number(n int64) string {
	switch {
	case n%1000 == 0: // a decimal number
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Capitalised returns a text with a capital first letter and without a final full stop.
func Capitalised(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return ""
	}
	return string(unicode.ToUpper(first)) + strings.TrimSuffix(text[size:], ".")
}
