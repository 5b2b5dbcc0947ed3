package server

import (
	"encoding/binary"

	"github.com/gozkd/gozkd/server/internal/bounds"
	"github.com/gozkd/gozkd/server/internal/link"
)

// refuseGrowing decides that a long create is refused whose head has arrived, if the state has no
// room for it. The data are left out of its frame, so that they neither take memory nor wait for a
// place, and write refuses the request in its turn, when the frame has ended: clients that have not
// sent all of it expect no answer. The client pays before its data are thrown away. refuseGrowing
// returns what comes next, and by how much the place of the frame in the input has changed.
func (c *conn) refuseGrowing(in *link.Input) (p pause, moved int) {
	frame := in.Announced()
	if !bounds.IsLong(frame) || c.queue.len() > 0 {
		return pauseInput, 0
	}
	r, err := decodeRequest(in.Bytes()[4:])
	if err != nil || !c.Admitted(r.Op, c.server.live.Load().Auth.Required) {
		return pauseInput, 0
	}
	d := r.decoder()
	_, n := d.String(), int(d.Int())
	at := in.Len() - 4 - len(d.Rest())
	if d.Err() != nil || at > link.LongestHead || at+n >= frame || n <= len(d.Rest()) {
		return pauseInput, 0
	}
	w := c.writeRequest(&r)
	if c.server.writes.CheckLarge(frame) == nil && c.server.state.tree.RefusesGrowth(&w, 4+frame-in.Len()) {
		binary.BigEndian.PutUint32(in.Bytes()[at:], 0) // of the data that are left
		before := in.At()
		in.LeaveOut(&c.Link, at, n)
		c.payRefusal(4 + frame)
		return pauseRefused, in.At() - before
	}
	return pauseInput, 0
}
