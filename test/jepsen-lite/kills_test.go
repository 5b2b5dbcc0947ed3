//go:build linux

package jepsenlite

import (
	"testing"

	"github.com/gozkd/gozkd/proto"
)

func TestKill_Judge(t *testing.T) {
	var l line
	conn := func(number, member, opened, closed int, why string) {
		l.add(Record{Kind: KindOpen, Conn: number, Member: member, Return: at(opened)})
		l.add(Record{Kind: KindClose, Conn: number, Member: member, Return: at(closed), Why: why})
	}
	conn(1, 1, 10, 110, WhyServer)  // of the one that is killed
	conn(2, 2, 10, 500, WhyClient)  // stays to the end
	conn(3, 2, 10, 120, WhyServer)  // does not
	conn(4, 3, 10, 120, WhySilence) // neither
	conn(5, 3, 150, 160, WhyServer) // turned away
	l.add(Record{Kind: KindOpen, Conn: 6, Member: 3, Return: at(200), Refused: true})
	l.op("set-0", proto.OpCreate, "/a", 90, 95, nil)
	l.op("set-0", proto.OpCreate, "/a", 240, 250, nil)
	k := kill{member: 1, at: at(100)}
	k.judge(l.h, at(300))
	var r Report
	r.add(l.h, at(0), at(300))
	if k.closed != 2 || k.refused != 1 || r.SessionsLost != 1 || k.gap != at(150) {
		t.Errorf("%+v, %d sessions lost", k, r.SessionsLost)
	}
}
