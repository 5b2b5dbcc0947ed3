package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

const report = `<?xml version="1.0"?>
<testsuites><testsuite name="s">
<testcase classname="C" name="passes()"/>
<testcase classname="C" name="fails()"><failure message="expected 1
but was 0" type="AssertionError">at C.fails</failure></testcase>
<testcase classname="C" name="breaks()"><error type="IOException"/></testcase>
<testcase classname="C" name="skips()"><skipped/></testcase>
<testcase classname="C" name="twice()"/>
<testcase classname="C" name="twice()"><failure message="no"/></testcase>
</testsuite></testsuites>`

func read(t *testing.T) results {
	t.Helper()
	all := make(results)
	readReport(strings.NewReader(report), func(class, name string) string { return class + "#" + name }, all)
	return all
}

func TestReadReport(t *testing.T) {
	want := results{
		"C#passes()": {passed: true},
		"C#fails()":  {why: "AssertionError expected 1 but was 0"},
		"C#breaks()": {why: "IOException"},
		"C#skips()":  {skipped: true},
		"C#twice()":  {why: "no"},
	}
	got := read(t)
	for test, o := range want {
		if got[test] != o {
			t.Errorf("%s: got %+v, want %+v", test, got[test], o)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d tests, want %d", len(got), len(want))
	}
	if must.Try(func() { readReport(strings.NewReader("<a>"), nil, got) }) == nil {
		t.Error("no error for half a report")
	}
}

func TestCompare(t *testing.T) {
	l := parseLeftOut("# comment\n\nC#left* has a reason\n")
	ours := results{
		"C#passes": {passed: true}, "C#fails": {why: "x"}, "C#worse": {why: "x"}, "C#left()": {why: "x"}, "C#skips": {skipped: true},
		"C#skipsThere": {why: "x"}, "C#skipsBoth": {skipped: true},
	}
	theirs := results{
		"C#passes": {passed: true}, "C#fails": {why: "y"}, "C#worse": {passed: true}, "C#left()": {passed: true}, "C#skips": {passed: true},
		"C#skipsThere": {skipped: true}, "C#skipsBoth": {skipped: true}, "C#missing": {passed: true}, "C#missingToo": {why: "z"},
	}
	both, onlyOurs := compare(ours, theirs, l)
	if want := []string{"C#fails", "C#missingToo"}; !slices.Equal(both, want) {
		t.Errorf("fail on both: %q, want %q", both, want)
	}
	if want := []string{"C#missing", "C#skips", "C#skipsThere", "C#worse"}; !slices.Equal(onlyOurs, want) {
		t.Errorf("fail on ours: %q, want %q", onlyOurs, want)
	}
}

func TestMerge_PassesAtAnyTry(t *testing.T) {
	r := results{"a": {passed: true}, "b": {why: "first"}}
	r.merge(results{"a": {why: "second"}, "b": {passed: true}, "c": {why: "new"}})
	if !r["a"].passed || !r["b"].passed || r["c"].why != "new" {
		t.Errorf("got %+v", r)
	}
}

// Every suite has a file of what is left out, which names reasons.
func TestLeftOut_FilesAreReadable(t *testing.T) {
	for _, s := range suites() {
		readLeftOut(s.name) // ends the test if a line is wrong
	}
	files, err := leftOutFiles.ReadDir("leftout")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(f.Name(), filepath.Ext(f.Name()))
		if !slices.ContainsFunc(suites(), func(s suite) bool { return s.name == name }) {
			t.Errorf("leftout/%s is of no suite", f.Name())
		}
	}
}

func TestReadLibtest(t *testing.T) {
	got := readLibtest([]byte("running 3 tests\ntest a::case_1 ... ok\ntest b ... FAILED\ntest c ... ignored, no network\n\ntest result: FAILED. 1 passed\n"))
	if len(got) != 3 || !got["a::case_1"].passed || got["b"].why == "" || !got["c"].skipped {
		t.Errorf("got %+v", got)
	}
}
