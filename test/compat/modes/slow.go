package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/rawclient"
	"github.com/gozkd/gozkd/proto"
)

const (
	// slowReplies is how many large replies a slow client asks for at once, slowRate how many bytes
	// of them it takes per second. Taking all takes several times as long as slowTimeout.
	slowReplies = 150
	slowRate    = 3 << 20
	slowTimeout = 3 * time.Second
)

// slowReaders plays clients of a follower that take large replies slowly, and ping meanwhile. Their
// sessions must live.
func (p *player) slowReaders() {
	m := p.roles()[1]
	s, _ := p.open(m, proto.ConnectRequest{})
	s.do(proto.OpCreate, create{path: "/large"})
	s.do(proto.OpSetData, &proto.SetDataRequest{Path: "/large", Data: make([]byte, 200_000), Version: -1})
	s.do(proto.OpCreate, create{path: "/list"})
	for i := range 200 {
		s.do(proto.OpCreate, create{path: fmt.Sprintf("/list/%s%03d", strings.Repeat("n", 1000), i)})
	}
	kinds := map[proto.OpCode]record{
		proto.OpGetData: &proto.PathWatchRequest{Path: "/large"}, proto.OpGetChildren: &proto.PathWatchRequest{Path: "/list"},
		proto.OpMultiRead: multi{{Op: proto.OpGetData, Path: "/large"}},
	}
	outcomes := make(chan string)
	for op, body := range kinds {
		slow, _ := p.open(m, proto.ConnectRequest{TimeoutMs: int32(slowTimeout.Milliseconds())})
		go func() { outcomes <- op.String() + ": " + slow.takeSlowly(op, body.Append(nil)) }() // ends with the replies
	}
	for _, line := range slices.Sorted(func(yield func(string) bool) {
		for range kinds {
			yield(<-outcomes)
		}
	}) {
		p.say("slow", line)
	}
}

// takeSlowly asks for all replies at once, takes them slowly, and says what came.
func (s *session) takeSlowly(op proto.OpCode, body []byte) string {
	var requests []byte
	for range slowReplies {
		requests = rawclient.AppendRequest(requests, 1, op, body)
	}
	if err := s.c.Write(requests, patience); err != nil {
		return err.Error()
	}
	begin, pinged, taken := time.Now(), time.Now(), 0
	for n := 0; n < slowReplies; {
		if time.Since(pinged) > slowTimeout/3 {
			pinged = time.Now()
			_ = s.c.Write(rawclient.AppendRequest(nil, proto.XidPing, proto.OpPing, nil), patience) // the read sees the end
		}
		frame, err := s.c.ReadFrame(patience)
		if err != nil {
			return fmt.Sprintf("%d replies, then %v", n, err)
		}
		if taken += len(frame); len(frame) > 100_000 {
			n++
		}
		time.Sleep(time.Until(begin.Add(time.Duration(taken) * time.Second / slowRate)))
	}
	return fmt.Sprintf("%d replies", slowReplies)
}
