package gozk

import (
	"strings"
	"testing"
)

func TestParseEvents(t *testing.T) {
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
	report, err := parseEvents(strings.NewReader(printed))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range report.Results {
		line := r.Name
		if r.Err != nil {
			line += " " + r.Err.Error()
		}
		got = append(got, line)
	}
	want := "TestA\nTestB fail: b_test.go:9: no leader\nTestC skip: \nTestD fail: panic: oh"
	if strings.Join(got, "\n") != want {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), want)
	}
	if strings.Contains(report.Log, "it passed") || !strings.Contains(report.Log, "server's words") {
		t.Errorf("the log is not that of the tests that failed:\n%s", report.Log)
	}
	if _, err := parseEvents(strings.NewReader("no JSON\n")); err == nil {
		t.Error("no error for a line that is no event")
	}
}
