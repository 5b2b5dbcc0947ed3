package main

import (
	"maps"
	"testing"
)

func TestReadGoTests(t *testing.T) {
	const printed = `{"Action":"start","Package":"p"}
{"Action":"output","Package":"p","Test":"TestA/sub","Output":"    a_test.go:7: not this: it passed\n"}
{"Action":"pass","Package":"p","Test":"TestA/sub"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:5: [ZKERR] server's words\n"}
{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:9: no leader\n"}
{"Action":"fail","Package":"p","Test":"TestB"}
{"Action":"skip","Package":"p","Test":"TestC"}
{"Action":"output","Package":"p","Test":"TestD","Output":"panic: oh\n"}
{"Action":"output","Package":"p","Test":"TestD","Output":"\t/src/d_test.go:15 +0x411\n"}
{"Action":"fail","Package":"p","Test":"TestD"}
{"Action":"fail","Package":"p"}
`
	want := results{"TestA": {passed: true}, "TestB": {why: "fail: b_test.go:9: no leader"}, "TestC": {skipped: true}, "TestD": {why: "fail: panic: oh"}}
	if got := readGoTests([]byte(printed)); !maps.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := readGoTests([]byte("no JSON\n")); len(got) != 1 || got["go test"].passed || got["go test"].why == "" {
		t.Errorf("no failure for a line that is no event: %+v", got)
	}
}
