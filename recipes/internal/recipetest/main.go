package recipetest

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

// Main is what TestMain of a family calls: it runs the tests, and fails if a goroutine is left.
//
// Under the race detector everything takes ten times as long, so rapid draws fewer worlds there, unless -rapid.checks says how many. The
// same tests run without it too, with the invariant checks compiled in: make inv.
func Main(m *testing.M) {
	flag.Parse()
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == checksFlag })
	if raceDetector && !set {
		if err := flag.Set(checksFlag, checksUnderRace); err != nil {
			panic(err) // rapid has no such flag any more
		}
	}
	goleak.VerifyTestMain(m)
}

const (
	checksFlag      = "rapid.checks"
	checksUnderRace = "15"
)
