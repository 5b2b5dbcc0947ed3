package server

import (
	"bufio"
	"strings"
	"testing"
)

// What a server answers while it does not serve, word by word. Source: ZooKeeper's commands.
func TestWords_NotServing(t *testing.T) {
	s, err := New(Config{Words: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	for word, want := range map[string]string{
		"ruok": "imok", "isro": "null", "gtmk": "306", "stmk": "306", "envi": "Environment:\n", "hash": notServing,
		"srvr": notServing + "\n", "stat": notServing + "\n", "conf": notServing + "\n", "cons": notServing + "\n",
		"crst": notServing + "\n", "srst": notServing + "\n", "dump": notServing + "\n", "wchs": notServing + "\n",
		"wchc": notServing + "\n", "wchp": notServing + "\n", "dirs": notServing + "\n", "mntr": notServing + "\n",
	} {
		var b strings.Builder
		w := bufio.NewWriter(&b)
		s.writeWord(w, word, nil)
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); got != want && (word != "envi" || !strings.HasPrefix(got, want)) {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
}

func TestDecimal(t *testing.T) {
	for v, want := range map[float64]string{0: "0.0", 2: "2.0", 1.625: "1.625", 0.07564: "0.0756", 123456789: "123456789.0"} {
		if got := decimal(v); got != want {
			t.Errorf("%v is %q, want %q", v, got, want)
		}
	}
}
