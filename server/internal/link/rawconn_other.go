//go:build !unix

package link

import (
	"net"
	"time"

	"github.com/gozkd/gozkd/internal/rawio"
)

// rawConn does not exist on this system: connections are read through small buffers and written by
// goroutines.
type rawConn struct{ last bool }

func newRawConn(net.Conn) *rawConn                   { return nil }
func (s *rawConn) queued() (q rawio.Queued, ok bool) { return q, false }
func (s *rawConn) probe(time.Duration)               {}
func (s *rawConn) answers() (a rawio.Answers)        { return a }
func (s *rawConn) fill(*Input) error                 { panic("link: no raw sockets on this system") }
func (s *rawConn) tryWrite([]byte, bool) (n int, err error) {
	panic("link: no raw sockets on this system")
}
