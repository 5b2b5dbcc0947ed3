package jepsenlite

import (
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/proto"
)

// A line writes a history by hand. Each call of a method appends one record; times are in
// milliseconds.
type line struct{ h []*Record }

// at is a time of a history written by hand.
func at(ms int) time.Duration { return time.Duration(ms) * time.Millisecond }

// add appends a record with the next Seq. A kind that is not named is a reply, of connection and
// session 1.
func (l *line) add(r Record) *Record {
	r.Seq = int64(len(l.h) + 1)
	if r.Kind == "" {
		r.Kind = KindReply
	}
	if r.Conn == 0 {
		r.Conn = 1
	}
	if r.Session == 0 {
		r.Session = proto.SessionID(r.Conn)
	}
	l.h = append(l.h, &r)
	return &r
}

// op appends a request with one part; ret 0 is one without an answer.
func (l *line) op(client string, op proto.OpCode, path string, call, ret int, more func(*Record)) *Record {
	r := Record{Client: client, Op: op, Parts: []Part{{Op: op, Path: path}}, Call: at(call), Return: at(ret)}
	if more != nil {
		more(&r)
	}
	return l.add(r)
}

// want runs one check and compares the number of anomalies, and a word of the first.
func want(t *testing.T, anomalies []Anomaly, word string) {
	t.Helper()
	switch {
	case word == "" && len(anomalies) > 0:
		t.Errorf("found %v in a history that is right", anomalies)
	case word != "" && len(anomalies) == 0:
		t.Errorf("found nothing, want %q", word)
	case word != "" && !strings.Contains(anomalies[0].What, word):
		t.Errorf("found %v, want %q", anomalies, word)
	}
}

// find runs the check with a name.
func find(t *testing.T, name string, h []*Record) []Anomaly {
	t.Helper()
	for _, c := range checks() {
		if c.name == name {
			return c.run(h)
		}
	}
	t.Fatalf("no check %q", name)
	return nil
}
