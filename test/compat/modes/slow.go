package main

import (
	"fmt"
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
	kinds := []struct {
		op   proto.OpCode
		body record
	}{
		{proto.OpGetData, &proto.PathWatchRequest{Path: "/large"}},
		{proto.OpGetChildren, &proto.PathWatchRequest{Path: "/list"}},
		{proto.OpMultiRead, multi{{Op: proto.OpGetData, Path: "/large"}}},
	}
	outcomes := make([]chan string, len(kinds))
	for i, k := range kinds {
		slow, _ := p.open(m, proto.ConnectRequest{TimeoutMs: int32(slowTimeout.Milliseconds())})
		outcomes[i] = make(chan string)
		go func() { outcomes[i] <- slow.takeSlowly(k.op, k.body.Append(nil)) }() // ends with the replies
	}
	for i, k := range kinds {
		p.say("slow "+k.op.String(), <-outcomes[i])
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
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { // ends with stop
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(slowTimeout / 3):
			}
			_ = s.c.Write(rawclient.AppendRequest(nil, proto.XidPing, proto.OpPing, nil), patience) // the reader sees the end
		}
	}()
	defer func() { close(stop); <-stopped }()
	begin, taken := time.Now(), 0
	for n := 0; n < slowReplies; {
		frame, err := s.c.ReadFrame(patience)
		if err != nil {
			return fmt.Sprintf("%d replies, then %v", n, err)
		}
		if len(frame) > 100_000 {
			n++
		}
		taken += len(frame)
		time.Sleep(time.Until(begin.Add(time.Duration(taken) * time.Second / slowRate)))
	}
	return fmt.Sprintf("%d replies", slowReplies)
}
