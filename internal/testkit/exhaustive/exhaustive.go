// Package exhaustive lets a test do more work in `make exhaustive` than in `make test`.
//
// `make test` must finish within minutes, so it runs a sample: a few drawn runs of each property,
// every 64th truncation of a log, one fault of each kind. `make exhaustive` runs the same tests
// over the whole range. It sets the environment variable GOZKD_EXHAUSTIVE, which the go command
// includes in the key of its test cache.
package exhaustive

import (
	"flag"
	"os"
	"strconv"
	"sync"
	"testing"
)

const variable = "GOZKD_EXHAUSTIVE"

// Enabled reports whether GOZKD_EXHAUSTIVE is set.
func Enabled() bool { return os.Getenv(variable) != "" }

// Or returns usual, or all if Enabled.
func Or[T any](usual, all T) T {
	if Enabled() {
		return all
	}
	return usual
}

// Only skips the test unless Enabled. Use it for tests that have no useful sample.
func Only(t testing.TB) {
	t.Helper()
	if !Enabled() {
		t.Skip("runs in make exhaustive, which sets " + variable)
	}
}

// DefaultChecks sets how often rapid.Check runs a property: usual times, or all times if Enabled.
// The command line's -rapid.checks takes precedence. TestMain calls it.
func DefaultChecks(usual, all int) {
	flag.Parse()
	setChecks(Or(usual, all))
}

// Checks sets for a single test the number that DefaultChecks sets for a package. The previous
// number is restored when the test ends, so parallel tests must not call Checks.
func Checks(t testing.TB, usual, all int) {
	t.Helper()
	previous := flag.Lookup(checksFlag).Value.String()
	setChecks(Or(usual, all))
	t.Cleanup(func() {
		if err := flag.Set(checksFlag, previous); err != nil {
			t.Error(err)
		}
	})
}

const checksFlag = "rapid.checks"

// setChecks makes rapid.Check run a property n times, unless the command line sets how often. With
// -short, rapid runs a fifth of its number, which of a few would leave none.
func setChecks(n int) {
	if checksGiven() {
		return
	}
	if testing.Short() {
		n *= 5
	}
	if err := flag.Set(checksFlag, strconv.Itoa(n)); err != nil {
		panic(err)
	}
}

// checksGiven reports whether the command line sets -rapid.checks. Later calls return the result of
// the first, because flag.Visit does not tell the command line from setChecks.
var checksGiven = sync.OnceValue(func() (given bool) {
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == checksFlag })
	return given
})
