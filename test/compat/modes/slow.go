package modes

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/internal/testkit/rawclient"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/test/compat/diff/exchange"
)

// slowReaders plays clients of a follower that ask for 80 replies of 200 kB, take 3 MB/s of them,
// and ping meanwhile. Their sessions live, although that takes longer than their timeout.
func (p *player) slowReaders() {
	m := must.Get(p.e.LeaderFirst(p.ctx))[1]
	s, _ := p.open(m, proto.ConnectRequest{})
	s.do(`create "/slow" "x" open 0`)
	s.do(fmt.Sprintf(`setData "/slow" %q -1`, make([]byte, 200_000)))
	for i := range 200 {
		s.do(fmt.Sprintf(`create "/slow/%s%03d" "x" open 0`, strings.Repeat("n", 1000), i))
	}
	ping := rawclient.AppendRequest(nil, proto.XidPing, proto.OpPing, nil)
	for _, words := range []string{`getData "/slow" false`, `getChildren "/slow" false`, `multiRead { getData "/slow" false }`} {
		op, body := must.Get2(exchange.ParseRequest(words))
		s, _ := p.open(m, proto.ConnectRequest{TimeoutMs: 2000})
		err := s.c.Write(bytes.Repeat(rawclient.AppendRequest(nil, 1, op, body), 80), patience)
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
