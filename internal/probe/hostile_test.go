package probe

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// Parsed text from any peer is safe for a terminal and for JSON.
func TestParse_Hostile(t *testing.T) {
	srvr := "Zookeeper version: \x1b]0;evil\x07\u009b31m" + strings.Repeat("v", 1<<20) + ", built\nLatency min/avg/max: 0/NaN/1\nMode: \x1b[2J\xff" + strings.Repeat("ü", 1<<20) + "\n"
	s, err := ParseState(srvr)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{s.Version, s.Mode} {
		if !utf8.ValidString(text) || utf8.RuneCountInString(text) > 64 || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%.200q", text)
		}
	}
	if _, err := json.Marshal(s); err != nil {
		t.Error(err)
	}
	if s, err := ParseState("Zookeeper version: 3.9.5-gozkd-0.1.0, built on\nLatency min/avg/max: 0/0.5/1\nMode: follower\n"); err != nil || s.Version != "3.9.5-gozkd-0.1.0" || s.Mode != "follower" || s.LatencyMs.Avg != 0.5 {
		t.Errorf("%+v, %v", s, err)
	}
	m := ParseMonitor("zk_a\tNaN\nzk_b\t+Inf\nzk_c\t1e999\nzk_d\t1.5\n")
	for _, key := range []string{"a", "b", "c"} {
		if v, ok := m.Float(key); ok {
			t.Errorf("%s is %v", key, v)
		}
	}
	if v, ok := m.Float("d"); !ok || v != 1.5 {
		t.Errorf("d is %v", v)
	}
	for _, hotp := range []string{`{"paths":[{"path":"/a","reads":1e308,"writes":1e308}]}`, `{"clients":[{"reads":-1}]}`, `{"window_s":1e300}`, `[]`, ``} {
		if h, err := ParseHot(hotp); err == nil {
			t.Errorf("%s: %+v", hotp, h)
		}
	}
	for _, cons := range []string{"", "\x00", " /[](", strings.Repeat(" /1.2.3.4:5[1](queued=99999999999999999999,avglat=NaN,est=-9223372036854775808)\n", 1000)} {
		for _, c := range ParseConnections(cons) {
			if math.IsNaN(c.LatencyMs.Avg) {
				t.Error(c)
			}
		}
	}
	if set := ParseSettings("serverId=\x1b\nserver.1=\x1b[31m:2888:3888;2181\nserver.300=a:1:2\nclientPort=999999999\n").Members; len(set) != 0 {
		t.Errorf("members %v", set)
	}
}
