package probe

import (
	"net"
	"strings"

	"github.com/gozkd/gozkd/proto"
)

// Connection is a line of cons.
type Connection struct {
	// Client is host:port.
	Client string
	// Session is 0 if the connection has no session, for example that of a four-letter word.
	Session proto.SessionID
	// Queued requests are not answered yet. Received and Sent count packets since crst.
	Queued, Received, Sent int64
	// LastOp is ZooKeeper's abbreviation of the last operation, such as GETD.
	LastOp string
	// SinceMs is when the connection was opened, in Unix milliseconds of the server's clock.
	SinceMs   int64
	TimeoutMs int64
	LastZxid  proto.Zxid
	LatencyMs Latency
}

// ParseConnections parses the answer to cons. It skips an incomplete line of a truncated answer.
func ParseConnections(cons string) []Connection {
	var conns []Connection
	for line := range strings.Lines(cons) {
		if c, ok := parseConnection(strings.TrimSpace(line)); ok {
			conns = append(conns, c)
		}
	}
	return conns
}

// parseConnection parses "/127.0.0.1:4312[1](queued=0,recved=2,sent=2,sid=0x1,…)".
func parseConnection(line string) (Connection, bool) {
	line, whole := strings.CutSuffix(line, ")")
	address, pairs, ok := strings.Cut(line, "](") // an address with a zone may contain brackets, but not this sequence
	bracket := strings.LastIndexByte(address, '[')
	if !whole || !ok || bracket < 0 {
		return Connection{}, false
	}
	c := Connection{Client: printable(clientAddress(address[:bracket]))}
	numbers := map[string]*int64{
		"queued": &c.Queued, "recved": &c.Received, "sent": &c.Sent, "est": &c.SinceMs, "to": &c.TimeoutMs,
		"minlat": &c.LatencyMs.Min, "maxlat": &c.LatencyMs.Max,
	}
	for pair := range strings.SplitSeq(pairs, ",") {
		key, value, _ := strings.Cut(pair, "=")
		switch key {
		case "sid":
			c.Session = proto.SessionID(hex(value))
		case "lop":
			c.LastOp = printable(value)
		case "lzxid":
			c.LastZxid = proto.Zxid(hex(value))
		case "avglat":
			c.LatencyMs.Avg = float64(number(value))
		default:
			if n := numbers[key]; n != nil {
				*n = number(value)
			}
		}
	}
	return c, true
}

// clientAddress converts Java's "host/1.2.3.4:5" and "/0:0:0:0:0:0:0:1:5" and gozkd's "/[::1]:5" to
// Go's form.
func clientAddress(s string) string {
	s = s[strings.IndexByte(s, '/')+1:]
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return s
	}
	host := strings.Trim(s[:i], "[]")
	if ip := net.ParseIP(host); ip != nil {
		host = ip.String()
	}
	return net.JoinHostPort(host, s[i+1:])
}
