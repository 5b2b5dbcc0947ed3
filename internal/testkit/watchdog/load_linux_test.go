package watchdog

import "testing"

func TestParseLoad(t *testing.T) {
	for text, want := range map[string]float64{
		"0.20 0.18 0.12 1/80 11206\n":  1,
		"21.50 0.18 0.12 3/80 11206\n": 21.5,
		"0.50 0.18 0.12 22/80 11206\n": 22,
		"":                             unknownLoad,
		"a 0.18 0.12 1/80 11206":       unknownLoad,
	} {
		if got := parseLoad(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
