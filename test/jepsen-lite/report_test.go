package jepsenlite

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/proto"
)

func TestLongestGap(t *testing.T) {
	var l line
	for _, ms := range []int{15, 30, 100, 110} {
		l.op("set-0", proto.OpCreate, "/a", ms-5, ms, nil)
	}
	l.op("set-0", proto.OpCreate, "/a", 60, 65, func(r *Record) { r.Err = proto.ErrNodeExists })
	l.op("set-0", proto.OpGetData, "/a", 60, 65, nil)
	l.op("set-0", proto.OpCreate, "/a", 60, 0, nil)
	for _, c := range []struct{ began, ended, want, since int }{
		{10, 120, 70, 30}, // between two
		{10, 300, 190, 110},
		{20, 60, 30, 30}, // to the end
		{101, 111, 9, 101},
		{500, 600, 100, 500}, // none at all
	} {
		if got, since := longestGap(l.h, at(c.began), at(c.ended)); got != at(c.want) || since != at(c.since) {
			t.Errorf("from %d to %d: %v since %v, want %d ms since %d", c.began, c.ended, got, since, c.want, c.since)
		}
	}
}

func TestReport(t *testing.T) {
	var l line
	l.add(Record{Kind: KindOpen, Client: "set-0", Return: at(1), Session: 7, Timeout: at(4)})
	l.op("set-0", proto.OpCreate, "/a", 10, 20, func(r *Record) { r.Session = 7 })
	l.op("set-0", proto.OpCreate, "/a", 10, 21, func(r *Record) { r.Err = proto.ErrNodeExists })
	l.op("set-0", proto.OpDelete, "/a", 10, 0, nil)
	l.add(Record{Kind: KindEvent, Return: at(25)})
	l.add(Record{Kind: KindClose, Return: at(30), Why: WhyServer})
	l.add(Record{Kind: KindOpen, Client: "set-0", Conn: 2, Return: at(31), Refused: true})
	l.add(Record{Kind: KindClose, Conn: 2, Return: at(32), Why: WhyClient})
	r := Report{Server: "x", Seed: 5, Rounds: 1, Faults: map[string]int{"kill": 2, "cut": 1}}
	r.add(l.h, at(0), at(100))
	if r.Sessions != 1 || r.SessionsLost != 1 || r.ConnsLost != 1 || r.Unanswered != 1 || r.Refused != 1 || r.Events != 1 || r.LongestGap != at(80) {
		t.Errorf("%+v", r)
	}
	r.Anomalies = []Anomaly{{Check: "set", What: "gone", Records: []int64{3}}}
	var b strings.Builder
	r.Print(&b)
	for _, want := range []string{"seed", "create 2", "cut 1, kill 2", "1 without an answer", "1 lost", "80ms", "set-0, timeout 4ms, at 31ms: 21ms after its last success, 11ms of it without", "set: gone (records [3])"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in:\n%s", want, b.String())
		}
	}
}

func TestWriteHistory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "history.jsonl")
	var l line
	l.op("set-0", proto.OpCreate, "/a", 10, 20, func(r *Record) { r.Zxid = 5 })
	l.add(Record{Kind: KindClose, Return: at(30), Why: WhyServer})
	if err := WriteHistory(file, l.h); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var back []*Record
	for s := bufio.NewScanner(f); s.Scan(); {
		r := new(Record)
		if err := json.Unmarshal(s.Bytes(), r); err != nil {
			t.Fatal(err)
		}
		back = append(back, r)
	}
	if !reflect.DeepEqual(back, l.h) {
		t.Errorf("%+v", back)
	}
}

func TestProgress(t *testing.T) {
	for name, c := range map[string]struct {
		writes []int // in seconds
		well   [2]int
		want   string
	}{
		"writes go on":       {writes: []int{1, 10, 20, 30}, well: [2]int{0, 40}},
		"a standstill":       {writes: []int{1, 20}, well: [2]int{0, 21}, want: "no write succeeded from 1s"},
		"until the end":      {writes: []int{1}, well: [2]int{0, 20}, want: "no write succeeded from 1s"},
		"without a majority": {writes: []int{1, 30}, well: [2]int{0, 10}},
		"from the beginning": {writes: []int{1, 30}, well: [2]int{2, 31}, want: "no write succeeded from 2s"},
	} {
		t.Run(name, func(t *testing.T) {
			var l line
			for _, s := range c.writes {
				l.op("register-0", proto.OpSetData, "/r", 1000*s-10, 1000*s, nil)
			}
			l.add(Record{Kind: KindWell, Call: at(1000 * c.well[0]), Return: at(1000 * c.well[1])})
			want(t, find(t, "progress", l.h), c.want)
		})
	}
}
