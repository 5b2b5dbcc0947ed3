package jepsenlite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/proto"
)

// A register is a history of one znode, of which create and two sets with the versions 1 and 2 went
// right.
func register(more func(l *line)) []*Record {
	var l line
	set := func(value string, version int32, call, ret int) {
		l.op("register-0", proto.OpSetData, "/k", call, ret, func(r *Record) {
			r.Parts[0].Data, r.Parts[0].Version, r.Parts[0].Stat.Version = value, version-1, version
		})
	}
	l.op("register-0", proto.OpCreate, "/k", 10, 20, func(r *Record) { r.Parts[0].Data = "a" })
	set("b", 1, 30, 40)
	set("c", 2, 50, 60)
	more(&l)
	return l.h
}

// read appends a synced read.
func (l *line) read(client string, sync, ret int, value string, version int32) {
	l.op(client, proto.OpGetData, "/k", sync+1, ret, func(r *Record) {
		r.Synced, r.Parts[0].Got, r.Parts[0].Stat.Version = at(sync), value, version
	})
}

func TestRegisters(t *testing.T) {
	for name, c := range map[string]struct {
		more func(l *line)
		want string
	}{
		"right": {more: func(l *line) { l.read("register-1", 70, 80, "c", 2) }},
		"read while it changes": {more: func(l *line) {
			l.read("register-1", 45, 80, "b", 1)
			l.read("register-2", 45, 80, "c", 2)
		}},
		"stale read": {more: func(l *line) { l.read("register-1", 70, 80, "b", 1) }, want: "Illegal"},
		"lost write": {more: func(l *line) {
			l.op("register-1", proto.OpGetData, "/k", 71, 80, func(r *Record) { r.Synced, r.Err = at(70), proto.ErrNoNode })
		}, want: "Illegal"},
		"wrong version": {more: func(l *line) { l.read("register-1", 70, 80, "c", 3) }, want: "Illegal"},
		"two winners": {more: func(l *line) {
			l.op("register-1", proto.OpSetData, "/k", 50, 65, func(r *Record) {
				r.Parts[0].Data, r.Parts[0].Version, r.Parts[0].Stat.Version = "d", 1, 2
			})
		}, want: "Illegal"},
		"refused although right": {more: func(l *line) {
			l.op("register-1", proto.OpSetData, "/k", 70, 80, func(r *Record) {
				r.Parts[0].Data, r.Parts[0].Version, r.Err = "d", 2, proto.ErrBadVersion
			})
		}, want: "Illegal"},
		"refused because the ensemble is full": {more: func(l *line) {
			l.op("register-1", proto.OpSetData, "/k", 70, 80, func(r *Record) {
				r.Parts[0].Data, r.Parts[0].Version, r.Err = "long", 2, proto.ErrQuotaExceeded
			})
			l.read("register-2", 90, 100, "c", 2)
		}},
		"refused because the ensemble is full, and done all the same": {more: func(l *line) {
			l.op("register-1", proto.OpSetData, "/k", 70, 80, func(r *Record) {
				r.Parts[0].Data, r.Parts[0].Version, r.Err = "long", 2, proto.ErrQuotaExceeded
			})
			l.read("register-2", 90, 100, "long", 3)
		}, want: "Illegal"},
		"without an answer, and it happened later": {more: func(l *line) {
			l.op("register-1", proto.OpSetData, "/k", 70, 0, func(r *Record) { r.Parts[0].Data, r.Parts[0].Version = "d", -1 })
			l.read("register-2", 80, 90, "c", 2)
			l.read("register-2", 100, 110, "d", 3)
		}},
		"without an answer, and it never happened": {more: func(l *line) {
			l.op("register-1", proto.OpDelete, "/k", 70, 0, func(r *Record) { r.Parts[0].Version = -1 })
			l.read("register-2", 80, 90, "c", 2)
		}},
		"without an answer, and it happened twice": {more: func(l *line) {
			l.op("register-1", proto.OpSetData, "/k", 70, 0, func(r *Record) { r.Parts[0].Data, r.Parts[0].Version = "d", -1 })
			l.read("register-2", 80, 90, "d", 3)
			l.read("register-2", 100, 110, "d", 4)
		}, want: "Illegal"},
		"without an answer, and it went away again": {more: func(l *line) {
			l.op("register-1", proto.OpSetData, "/k", 70, 0, func(r *Record) { r.Parts[0].Data, r.Parts[0].Version = "d", -1 })
			l.read("register-2", 80, 90, "d", 3)
			l.read("register-2", 100, 110, "c", 2)
		}, want: "Illegal"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			anomalies := CheckRegisters(register(c.more), dir)
			want(t, anomalies, c.want)
			picture, err := os.ReadFile(filepath.Join(dir, "porcupine-k.html"))
			if has := err == nil && strings.Contains(string(picture), "setData"); has != (c.want != "") {
				t.Errorf("a picture: %v, %v", has, err)
			}
		})
	}
}

// Nobody knows is not right.
func TestRegisters_UnknownIsAnAnomaly(t *testing.T) {
	// Sixty writes without an answer, none of which anybody saw: too many orders to try in no time.
	h := register(func(l *line) {
		for i := range 60 {
			l.op("register-1", proto.OpSetData, "/k", 70, 0, func(r *Record) {
				r.Parts[0].Data, r.Parts[0].Version = strings.Repeat("x", i+1), -1
			})
		}
		l.read("register-2", 80, 90, "never written", 7)
	})
	want(t, checkRegisters(h, "", time.Millisecond), "Unknown")
}
