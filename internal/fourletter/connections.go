package fourletter

import (
	"bufio"

	"github.com/gozkd/gozkd/proto"
)

// writeConnections writes a line for each connection, for the word cons with all fields, for stat
// without those of the session. The server no longer reads from the connection asker.
func writeConnections(w *bufio.Writer, s Server, asker int64, full bool) {
	for _, f := range s.Connections() {
		interest := 0
		if f.ID != asker {
			interest = f.InterestOps()
		}
		say(w, " /%s[%x](queued=%d,recved=%d,sent=%d", f.Remote, interest, f.Queued, f.Received, f.Sent)
		if full && f.Session != 0 {
			say(w, ",sid=%s,lop=%s,est=%d,to=%d", proto.SessionID(f.Session), f.LastOp, f.Since.UnixMilli(), f.Timeout.Milliseconds())
			if f.LastXid >= 0 {
				say(w, ",lcxid=0x%x", f.LastXid)
			}
			lastMs := max(f.LastReply.UnixMilli(), 0) // that of the zero time is negative
			say(w, ",lzxid=%s,lresp=%d,llat=%d,minlat=%d,avglat=%d,maxlat=%d",
				proto.Zxid(f.LastZxid), lastMs, f.LastLatency.Milliseconds(), f.MinMs, int64(f.AvgMs), f.MaxMs)
		}
		say(w, ")\n")
	}
}
