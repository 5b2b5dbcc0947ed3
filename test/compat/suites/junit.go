package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// outcome is the result of a test. A skipped test has skipped itself.
type outcome struct {
	passed, skipped bool
	why             string // it failed
}

// results holds outcomes by test.
type results map[string]outcome

// merge adds the outcomes of another try: a test that passes at any try has passed.
func (r results) merge(other results) {
	for test, o := range other {
		if old, ok := r[test]; !ok || !old.passed {
			r[test] = o
		}
	}
}

// junitCase is a test case in JUnit's XML.
type junitCase struct {
	Class    string       `xml:"classname,attr"`
	Name     string       `xml:"name,attr"`
	Failures []junitEvent `xml:"failure"`
	Errors   []junitEvent `xml:"error"`
	Skipped  *junitEvent  `xml:"skipped"`
}

type junitEvent struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
}

// readReports reads all JUnit XML files in dir.
func readReports(dir string, name func(class, name string) string) results {
	all := make(results)
	for _, file := range must.Get(filepath.Glob(filepath.Join(dir, "*.xml"))) {
		must.Doing(filepath.Base(file), func() { readReport(bytes.NewReader(must.Get(os.ReadFile(file))), name, all) })
	}
	return all
}

// readReport adds the cases of a report, at whatever depth they are. Two cases of one name pass if
// both do.
func readReport(r io.Reader, name func(class, name string) string, all results) {
	d := xml.NewDecoder(r)
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		must.Do(err)
		start, ok := token.(xml.StartElement)
		if !ok || start.Name.Local != "testcase" {
			continue
		}
		var c junitCase
		must.Do(d.DecodeElement(&c, &start))
		test, o := name(c.Class, c.Name), c.outcome()
		if old, ok := all[test]; !ok || old.passed && !o.skipped {
			all[test] = o
		}
	}
}

func (c *junitCase) outcome() outcome {
	const longest = 200
	for _, e := range append(c.Failures, c.Errors...) {
		why := strings.Join(strings.Fields(e.Type+" "+e.Message), " ")
		return outcome{why: why[:min(len(why), longest)]}
	}
	if c.Skipped != nil {
		return outcome{skipped: true}
	}
	return outcome{passed: true}
}
