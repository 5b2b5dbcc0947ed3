package server

import (
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/fourletter"
)

// The answers of a server that does not serve are ZooKeeper's.
func TestWords_NotServing(t *testing.T) {
	const refused = "This ZooKeeper instance is not currently serving requests"
	s, err := New(Config{Words: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	for word, want := range map[string]string{
		"ruok": "imok", "isro": "null", "gtmk": "306", "stmk": "306", "envi": "Environment:\n", "hash": refused,
		"srvr": refused + "\n", "stat": refused + "\n", "conf": refused + "\n", "cons": refused + "\n",
		"crst": refused + "\n", "srst": refused + "\n", "dump": refused + "\n", "wchs": refused + "\n",
		"wchc": refused + "\n", "wchp": refused + "\n", "dirs": refused + "\n", "mntr": refused + "\n",
	} {
		var b strings.Builder
		w := fourletter.NewWriter(&b)
		fourletter.Write(w, word, s.Facts(), 0)
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); got != want && (word != "envi" || !strings.HasPrefix(got, want)) {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
}
