package main

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/rawclient"
	"github.com/gozkd/gozkd/proto"
)

// slowReaders plays clients of a follower that ask for 80 replies of 200 kB, take 3 MB/s of them,
// and ping meanwhile. Their sessions live, although that takes longer than their timeout.
func (p *player) slowReaders() {
	m := p.roles()[1]
	s, _ := p.open(m, proto.ConnectRequest{})
	s.do(proto.OpCreate, create{path: "/slow"})
	s.do(proto.OpSetData, &proto.SetDataRequest{Path: "/slow", Data: make([]byte, 200_000), Version: -1})
	for i := range 200 {
		s.do(proto.OpCreate, create{path: fmt.Sprintf("/slow/%s%03d", strings.Repeat("n", 1000), i)})
	}
	read, ping := (&proto.PathWatchRequest{Path: "/slow"}).Append(nil), rawclient.AppendRequest(nil, proto.XidPing, proto.OpPing, nil)
	bodies := [][]byte{read, read, multi{{Op: proto.OpGetData, Path: "/slow"}}.Append(nil)}
	for i, op := range []proto.OpCode{proto.OpGetData, proto.OpGetChildren, proto.OpMultiRead} {
		s, _ := p.open(m, proto.ConnectRequest{TimeoutMs: 2000})
		err := s.c.Write(bytes.Repeat(rawclient.AppendRequest(nil, 1, op, bodies[i]), 80), patience)
		begin, replies := time.Now(), 0
		for frame := []byte(nil); err == nil && replies < 80; {
			if frame, err = s.c.ReadFrame(patience); len(frame) > 100_000 {
				replies++
				time.Sleep(time.Until(begin.Add(time.Duration(replies) * time.Second / 15)))
				_ = s.c.Write(ping, patience) // the next read sees an error
			}
		}
		p.say("slow "+op.String(), replies, err)
	}
}
