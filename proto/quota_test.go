package proto_test

import (
	"testing"

	"github.com/gozkd/gozkd/proto"
)

// What each text becomes is what StatsTrack of ZooKeeper 3.9.5 makes of it; "" is an error.
func TestQuota(t *testing.T) {
	for text, want := range map[string]string{
		"": "count=-1,bytes=-1", ",": "count=-1,bytes=-1", ";;": "count=-1,bytes=-1",
		"count=5,bytes=-1": "count=5,bytes=-1",
		"count=5,bytes=-1=;byteHardLimit=-1;countHardLimit=7": "count=5,bytes=-1=;byteHardLimit=-1;countHardLimit=7",
		"countHardLimit=7":        "count=-1,bytes=-1=;countHardLimit=7",
		"byteHardLimit=9,count=1": "count=1,bytes=-1=;byteHardLimit=9",
		"count=1;;bytes=2":        "count=1,bytes=2",
		"count=1,bytes=2,;":       "count=1,bytes=2",
		"count=1,count=2":         "count=2,bytes=-1",
		"count=1=2":               "count=1,bytes=-1",
		"countHardLimit=3==":      "count=-1,bytes=-1=;countHardLimit=3",
		"countHardLimit=3=x":      "count=-1,bytes=-1=;countHardLimit=3",
		"countHardLimit==3":       "count=-1,bytes=-1=;countHardLimit=-1",
		"countHardLimit=-5":       "count=-1,bytes=-1=;countHardLimit=-5",
		"count=+5":                "count=5,bytes=-1",
		"count=-0":                "count=0,bytes=-1",
		"x=1":                     "count=-1,bytes=-1=;x=1",
		"=5":                      "count=-1,bytes=-1=;=5",
		"count=;bytes=3":          "", "count=,bytes=3": "", "count": "", "count,bytes=3": "", "nonsense": "", "=": "", ",count=1": "",
		"count=many": "", "count= 5": "", "count=5 ": "", "count=1\n": "", "count=9223372036854775808": "",
	} {
		q, err := proto.ParseQuota(text)
		if (err != nil) != (want == "") || err == nil && q.String() != want {
			t.Errorf("%q is read as %q, %v, want %q", text, q, err, want)
		}
	}
}
