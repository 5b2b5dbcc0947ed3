package cases

import (
	"errors"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	r, err := Parse(strings.NewReader("version 1.2 beta\nnoise\nok one\nFAIL two it is broken\n"))
	if err != nil {
		t.Fatal(err)
	}
	if r.Version != "1.2 beta" || r.Passed() != 1 || len(r.Results) != 2 || r.OK() {
		t.Errorf("got %+v", r)
	}
	if got := r.Results[1]; got.Name != "two" || got.Err == nil || got.Err.Error() != "it is broken" {
		t.Errorf("got %+v", got)
	}
}

func TestParse_Unusable(t *testing.T) {
	for _, in := range []string{"", "version 1\n", "ok one\n", "version 1\nok one\nok one\n"} {
		if r, err := Parse(strings.NewReader(in)); err == nil {
			t.Errorf("Parse(%q) = %+v, want an error", in, r)
		}
	}
}

func TestReport_With(t *testing.T) {
	broken := errors.New("broken")
	first := Report{Version: "1", Log: "first", Results: []Result{{"a", nil}, {"b", broken}, {"c", broken}, {"d", broken}}}
	if got := strings.Join(first.Failed(), " "); got != "b c d" {
		t.Errorf("failed: %s, want b c d", got)
	}
	got := first.With(Report{Log: "again", Results: []Result{{"b", nil}, {"c", errors.New("still broken")}}})
	if left := strings.Join(got.Failed(), " "); left != "c d" || got.Results[2].Err.Error() != "still broken" || got.Log != "again" {
		t.Errorf("got %+v, want b passed, c still broken and d, which did not run again, broken", got)
	}
	if len(first.Failed()) != 3 {
		t.Errorf("the first report changed: %+v", first)
	}
}
