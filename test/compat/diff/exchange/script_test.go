package exchange

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/proto"
)

// ParseRequest returns the body that words described, for any operation.
func TestWords_RoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	inFields := 0
	for range 20000 {
		op := proto.OpCode(rng.IntN(110) - 2)
		body := make([]byte, rng.IntN(40))
		for i := range body {
			body[i] = byte([]int{0, 0, 0, 0, 0, 1, 2, 4, 'a', 0xff, '"'}[rng.IntN(11)])
		}
		r := Request{Op: op, Body: body}
		if !strings.Contains(r.words(), " raw ") {
			inFields++
		}
		gotOp, got, err := ParseRequest(r.words())
		if err != nil || gotOp != op || string(got) != string(body) {
			t.Fatalf("%s: got %v %x, %v, want %v %x", r.words(), gotOp, got, err, op, body)
		}
	}
	if inFields < 100 {
		t.Errorf("only %d bodies were records", inFields)
	}
}

func TestReadScript(t *testing.T) {
	list, err := ReadScript(`
# a comment
sequence a
connect 1 {"how":"unknown"}
connect 0
0 create "/a" null [31 null "x"] 0 less 2
0 & xid=-2 ping plus "\x01"
0 closes multi { check "/a" -1 ; setData "/a" "" 0 }
drop 0
raw 0 "\xff"
sequence b
reconnects
1 zxidOf=0 setWatches 0 ["/a"] [] null
1 until=-101 delete "/a" -1
`)
	if err != nil {
		t.Fatal(err)
	}
	a := list[0].Steps
	switch {
	case len(list) != 2 || len(a) != 6 || list[1].Name != "b":
		t.Fatalf("got %d sequences, %d steps in the first", len(list), len(a))
	case !a[0].Closes || a[0].Connect.Session != 1 || a[1].Closes || a[1].Connect.TimeoutMs != 30000:
		t.Errorf("handshakes: %+v, %+v", a[0], a[1])
	case len(a[2].Send) != 2 || a[2].Send[0].Xid != 1 || a[2].Send[1].Xid != -2 || a[2].Closes:
		t.Errorf("pipelined requests: %+v", a[2])
	case len(a[2].Send[0].Body) != 4+2+4+4+4+4+4+1+4-2:
		t.Errorf("a shortened body of %d bytes", len(a[2].Send[0].Body))
	case !a[3].Closes || a[3].Send[0].Xid != 2 || !a[4].Drop || string(a[5].Raw) != "\xff":
		t.Errorf("last steps: %+v", a[3:])
	case *list[1].Steps[0].Send[0].ZxidOf != 0:
		t.Errorf("setWatches: %+v", list[1].Steps[0])
	case !list[1].Reconnects || list[1].Steps[1].Until != proto.ErrNoNode:
		t.Errorf("the second sequence: %+v", list[1])
	}
	for _, s := range list {
		if again, err := ReadScript(s.String()); err != nil || !reflect.DeepEqual(again[0], s) {
			t.Errorf("%v is read as %v: %v", s, again, err)
		}
	}
}

func TestReadScript_Refuses(t *testing.T) {
	for _, text := range []string{
		"0 ping", "sequence a\n0 & ping", "sequence a\n0 nothing", "sequence a\n0 exists \"/a\"", "sequence a\nx ping",
		"sequence a\n0 ping x", "sequence a\n0 multi { ping", "sequence a\nraw 0 ff", "sequence a\nconnect 0 {", "sequence a\n0 xid=x ping",
	} {
		if _, err := ReadScript(text); !errors.Is(err, ErrScript) {
			t.Errorf("%q: error %v", text, err)
		}
	}
}
