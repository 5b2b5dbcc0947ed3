// Package cases holds the parts that the client scripts of make compat share: named cases, their
// results, and the parser of scripts in other languages.
package cases

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// Timeout bounds a case.
const Timeout = 20 * time.Second

// Case is a piece of a client's work. Package must ends Run if the client got a wrong result.
type Case struct {
	Name string
	Run  func(ctx context.Context)
}

// Result is the result of a case. Err is nil if it passed.
type Result struct {
	Name string
	Err  error
}

// Report holds a client's results on a server.
type Report struct {
	Version string // the client's
	Results []Result
	Log     string // helps to understand a failure
}

// Passed counts the results without an error.
func (r Report) Passed() int {
	n := 0
	for _, res := range r.Results {
		if res.Err == nil {
			n++
		}
	}
	return n
}

// OK reports whether the client ran at least a case and all of them passed.
func (r Report) OK() bool { return len(r.Results) > 0 && r.Passed() == len(r.Results) }

// Expect turns the results of the named cases round: a case passes with an error that contains the
// text.
func (r Report) Expect(errors map[string]string) {
	for i := range r.Results {
		res := &r.Results[i]
		text, expected := errors[res.Name]
		switch {
		case !expected:
		case res.Err == nil:
			res.Err = fmt.Errorf("cases: ended without the error %q", text)
		case strings.Contains(res.Err.Error(), text):
			res.Err = nil
		}
	}
}

// Run runs the cases in turn, each with its own timeout.
func Run(ctx context.Context, list []Case) []Result {
	results := make([]Result, 0, len(list))
	for _, c := range list {
		results = append(results, Result{Name: c.Name, Err: runOne(ctx, c)})
	}
	return results
}

func runOne(ctx context.Context, c Case) error {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	return must.Try(func() { c.Run(ctx) })
}

// Expect ends the case unless got is want.
func Expect[T comparable](what string, got, want T) {
	if got != want {
		must.Failf("%s: got %v, want %v", what, got, want)
	}
}

// Eventually polls condition until true. The case ends if the context ends first.
func Eventually(ctx context.Context, what string, condition func() bool) {
	must.Await(ctx, Timeout, what, func() error {
		if !condition() {
			return errors.New("it never came true")
		}
		return nil
	})
}

// EventuallyEqual polls get until get returns want. The case ends if the context ends first.
func EventuallyEqual[T comparable](ctx context.Context, what string, get func() T, want T) {
	var got T
	err := must.Try(func() { Eventually(ctx, what, func() bool { got = get(); return got == want }) })
	if err != nil {
		must.Failf("%w: got %v, want %v", err, got, want)
	}
}

// Parse reads a script's lines "version V", "ok NAME" and "FAIL NAME why", and ignores others. A
// script without a version or a case is an error, and so is a repeated name, because one result
// would hide the other.
func Parse(r io.Reader) (Report, error) {
	var report Report
	seen := map[string]bool{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		name, why, _ := strings.Cut(rest, " ")
		var err error
		switch word {
		case "version":
			report.Version = rest
			continue
		case "ok":
		case "FAIL":
			err = errors.New(why)
		default:
			continue
		}
		if seen[name] {
			return report, fmt.Errorf("cases: %s is reported twice", name)
		}
		seen[name] = true
		report.Results = append(report.Results, Result{Name: name, Err: err})
	}
	if err := lines.Err(); err != nil {
		return report, fmt.Errorf("cases: read the script's output: %w", err)
	}
	if report.Version == "" || len(report.Results) == 0 {
		return report, errors.New("cases: the script reported no version or no case")
	}
	return report, nil
}

// ParseTests reads what go test -json prints and makes a result of each test, named "PACKAGE.TEST"
// without the module. Subtests belong to their test. said extracts the reason from what a failed or
// skipped test printed. The log has the output of these tests and names the packages that failed.
func ParseTests(r io.Reader, said func(output string) string) (Report, error) {
	var report Report
	printed := map[string]string{} // by test
	for d := json.NewDecoder(r); ; {
		var e struct{ Action, Package, Test, Output string }
		if err := d.Decode(&e); errors.Is(err, io.EOF) {
			return report, nil
		} else if err != nil {
			return report, fmt.Errorf("cases: read what go test says: %w", err)
		}
		test, _, isSub := strings.Cut(e.Test, "/")
		name := e.Package[strings.LastIndex(e.Package, "/")+1:] + "." + test
		switch {
		case test == "" && e.Action == "fail":
			report.Log += "FAIL " + e.Package + "\n"
		case test == "":
		case e.Action == "output":
			printed[name] += e.Output
		case isSub:
		case e.Action == "pass":
			report.Results = append(report.Results, Result{Name: name})
		case e.Action == "fail", e.Action == "skip":
			err := errors.New(e.Action + ": " + said(printed[name]))
			report.Results = append(report.Results, Result{Name: name, Err: err})
			report.Log += printed[name]
		}
	}
}
