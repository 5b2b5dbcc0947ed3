package archtest

import (
	"bytes"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// promised are the packages that keep their API from version 1 on. docs/guide/embedding.md lists
// them, too.
var promised = []string{
	"admin", "audit", "client", "metrics", "proto", "proto/jute", "recipes", "recipes/agree", "recipes/barrier", "recipes/cache",
	"recipes/discovery", "recipes/election", "recipes/group", "recipes/lock", "recipes/queue", "recipes/shared",
	"sasl", "sasl/kerberos", "sasl/kerberos/principal", "server", "server/facts", "server/identity", "web", "zktest",
}

// apiOffenders are the types that promised packages show nevertheless. The list may only shrink.
var apiOffenders = []string{
	"web shows internal/webrole.Role",                    // packages below web decide by it
	"web shows internal/history.Archive",                 // only gozkd has one
	"server shows consensus.LogEntry",                    // only gozkd archives the log
	"server/facts shows internal/histogram.Distribution", // only server makes facts
}

// exportedTypes returns the promised packages with their types, as they were compiled.
func exportedTypes(t *testing.T) map[string]*types.Package {
	t.Helper()
	args := []string{"list", "-deps", "-export", "-f", "{{if .Export}}{{.ImportPath}}\t{{.Export}}{{end}}"}
	for _, p := range promised {
		args = append(args, modulePath+"/"+p)
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	files := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		files[path] = file
	}
	imports := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		text, err := os.ReadFile(files[path])
		return io.NopCloser(bytes.NewReader(text)), err
	})
	all := make(map[string]*types.Package)
	for _, p := range promised {
		if all[p], err = imports.Import(modulePath + "/" + p); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// apiFault is a place that shows a type which is not promised.
type apiFault struct{ where, row string }

// apiFaults returns the exported aliases of types in packages that are not promised, and the
// fields, parameters and results with such types: a user cannot name these, and go doc does not
// show what they have.
func apiFaults(pkg *types.Package, name string) (faults []apiFault) {
	hidden := func(o *types.TypeName) string {
		if o.Pkg() == nil {
			return ""
		}
		path, ours := strings.CutPrefix(o.Pkg().Path(), modulePath+"/")
		if !ours || path == name || slices.Contains(promised, path) {
			return ""
		}
		return path + "." + o.Name()
	}
	var walk func(where string, t types.Type)
	walk = func(where string, t types.Type) {
		switch t := t.(type) {
		case *types.Named:
			if h := hidden(t.Obj()); h != "" {
				faults = append(faults, apiFault{where, name + " shows " + h})
			}
			for arg := range t.TypeArgs().Types() {
				walk(where, arg)
			}
		case *types.Alias:
			walk(where, types.Unalias(t))
		case *types.Map:
			walk(where, t.Key())
			walk(where, t.Elem())
		case *types.Signature:
			for _, tuple := range []*types.Tuple{t.Params(), t.Results()} {
				for v := range tuple.Variables() {
					walk(where, v.Type())
				}
			}
		case *types.Struct:
			for f := range t.Fields() {
				if f.Exported() {
					walk(where+"."+f.Name(), f.Type())
				}
			}
		case *types.Interface:
			for m := range t.Methods() {
				if m.Exported() {
					walk(where+"."+m.Name(), m.Type())
				}
			}
		case interface{ Elem() types.Type }: // pointers, slices, arrays, channels
			walk(where, t.Elem())
		}
	}
	for _, id := range pkg.Scope().Names() {
		o := pkg.Scope().Lookup(id)
		where := name + "." + id
		typ, isType := o.(*types.TypeName)
		switch {
		case !o.Exported():
		case isType && typ.IsAlias():
			if named, ok := types.Unalias(typ.Type()).(*types.Named); ok {
				if h := hidden(named.Obj()); h != "" {
					faults = append(faults, apiFault{where, name + " shows " + h})
				}
			}
		case isType:
			walk(where, typ.Type().Underlying())
			for method := range types.NewMethodSet(types.NewPointer(typ.Type())).Methods() {
				if method.Obj().Exported() {
					walk(where+"."+method.Obj().Name(), method.Type())
				}
			}
		default:
			walk(where, o.Type())
		}
	}
	return faults
}

// TestAPI: users see no types of packages that are not promised, and each logger of a promised
// Config may be one of log/slog.
func TestAPI(t *testing.T) {
	load(t) // NB: opens every source file, so that a cached result of this test dies with any change of them
	var found []apiFault
	for name, pkg := range exportedTypes(t) {
		found = append(found, apiFaults(pkg, name)...)
		for _, id := range pkg.Scope().Names() {
			s, ok := pkg.Scope().Lookup(id).Type().Underlying().(*types.Struct)
			if !ok {
				continue
			}
			has := make(map[string]string)
			for f := range s.Fields() {
				has[f.Name()] = f.Type().String()
			}
			if strings.Contains(has["Logger"], "hclog") && has["Slog"] != "*log/slog.Logger" {
				t.Errorf("%s.%s has a Logger of hclog and no Slog *slog.Logger", name, id)
			}
		}
	}
	shown := make(map[string]bool) // by package and type
	for _, f := range found {
		shown[f.row] = true
		if !slices.Contains(apiOffenders, f.row) {
			t.Errorf("%s: %s, which is not promised: define the type in the promised package, or hide it", f.where, f.row)
		}
	}
	for _, row := range apiOffenders {
		if !shown[row] {
			t.Errorf("it is no longer true that %s: remove it from apiOffenders", row)
		}
	}
	guide := pages(t)["guide/embedding.md"]
	for _, p := range promised {
		if !strings.Contains(guide, "`"+p+"`") {
			t.Errorf("docs/guide/embedding.md does not say that %s is promised", p)
		}
	}
}

func TestAPI_Finds(t *testing.T) {
	vfs := types.NewPackage(modulePath+"/internal/vfs", "vfs")
	fs := types.NewNamed(types.NewTypeName(token.NoPos, vfs, "FS", nil), types.NewInterfaceType(nil, nil), nil)
	server := types.NewPackage(modulePath+"/server", "server")
	field := types.NewField(token.NoPos, server, "FS", types.NewSlice(fs), false)
	result := types.NewTuple(types.NewVar(token.NoPos, server, "", types.NewPointer(fs)))
	for _, o := range []types.Object{
		types.NewTypeName(token.NoPos, server, "hidden", fs),
		types.NewVar(token.NoPos, server, "Sum", types.Typ[types.Int]),
		types.NewFunc(token.NoPos, server, "Open", types.NewSignatureType(nil, nil, nil, nil, result, false)),
		types.NewAlias(types.NewTypeName(token.NoPos, server, "FS", nil), fs).Obj(),
	} {
		server.Scope().Insert(o)
	}
	config := types.NewTypeName(token.NoPos, server, "Config", nil)
	types.NewNamed(config, types.NewStruct([]*types.Var{field}, nil), nil)
	server.Scope().Insert(config)
	var where []string
	for _, f := range apiFaults(server, "server") {
		if f.row != "server shows internal/vfs.FS" {
			t.Errorf("%s: %s", f.where, f.row)
		}
		where = append(where, f.where)
	}
	if want := []string{"server.Config.FS", "server.FS", "server.Open"}; !slices.Equal(where, want) {
		t.Errorf("found %q, want %q", where, want)
	}
}
