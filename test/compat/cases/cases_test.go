package cases

import (
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
