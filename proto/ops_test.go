package proto_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/proto"
)

// TestOps_HoldEveryOpCode compares the table with the constants in opcode.go.
func TestOps_HoldEveryOpCode(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "opcode.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	constants := make(map[string]bool) // in lower case, without Op
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			for _, name := range spec.Names {
				constants[strings.ToLower(strings.TrimPrefix(name.Name, "Op"))] = true
			}
		}
		return true
	})
	rows, last := 0, proto.OpCode(-1<<31)
	for info := range proto.Ops() {
		if info.Code <= last {
			t.Errorf("%v comes after %v", info.Code, last)
		}
		last = info.Code
		if info.Code.Info() != info || info.Code.String() != info.Name || info.Code.Index() != rows {
			t.Errorf("%v: Info %+v, Index %d in row %d", info.Code, info.Code.Info(), info.Code.Index(), rows)
		}
		if !constants[strings.ToLower(info.Name)] {
			t.Errorf("%s has no constant", info.Name)
		}
		delete(constants, strings.ToLower(info.Name))
		rows++
	}
	if rows != proto.NumOps || len(constants) > 0 {
		t.Errorf("%d rows, NumOps is %d; constants without a row: %v", rows, proto.NumOps, constants)
	}
}

// TestOps_AreConsistent checks what the columns of the table say about each other.
func TestOps_AreConsistent(t *testing.T) {
	for info := range proto.Ops() {
		writes := info.Class == proto.ClassWrite || info.Class == proto.ClassReconfig || info.Class == proto.ClassInternal
		switch {
		case (info.Class == proto.ClassNone) != (info.Group == ""):
			t.Errorf("%s: only a request of a client has a class and a group: %+v", info.Name, info)
		case info.Class != proto.ClassNone && info.Write != writes:
			t.Errorf("%s: class and Write disagree: %+v", info.Name, info)
		case info.Session && info.Path != proto.PathNone:
			t.Errorf("%s: it is on a session and has a path: %+v", info.Name, info)
		}
	}
	for _, unknown := range []proto.OpCode{-1 << 31, -25, -2, 10, 23, 99, 108, 2600, 2602, 1<<31 - 1} {
		info := unknown.Info()
		if info.Name != "" || info.Class != proto.ClassNone || unknown.Index() != proto.OpError.Index() || !strings.HasPrefix(unknown.String(), "op(") {
			t.Errorf("%v: %+v", unknown, info)
		}
	}
}
