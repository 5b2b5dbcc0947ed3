package fourletter

import "testing"

func TestDecimal(t *testing.T) {
	for v, want := range map[float64]string{0: "0.0", 2: "2.0", 1.625: "1.625", 0.07564: "0.0756", 123456789: "123456789.0"} {
		if got := decimal(v); got != want {
			t.Errorf("%v is %q, want %q", v, got, want)
		}
	}
}
