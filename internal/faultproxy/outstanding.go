package faultproxy

import "github.com/gozkd/gozkd/proto"

// mark is the fault to apply to a reply.
type mark struct {
	rule *Armed
	body []byte // Fail only: the body of the reply; nil: the code goes into the header
}

// unanswered is a request without a reply so far.
type unanswered struct {
	xid   int32 // of the reply
	close bool  // the request ends the session
	mark  *mark // nil: the reply passes
}

// outstanding is the requests without a reply, in the order of their arrival. Replies have the same
// order, except that replies to auth, sasl and unknown op codes overtake others. All requests are
// kept because an xid does not identify a request: all pings share an xid, and a client may reuse
// any other.
type outstanding struct {
	list []unanswered
	head int
}

func (o *outstanding) add(u unanswered) {
	if len(o.list) == cap(o.list) && o.head > len(o.list)/2 {
		n := copy(o.list, o.list[o.head:])
		clear(o.list[n:])
		o.list, o.head = o.list[:n], 0
	}
	o.list = append(o.list, u)
}

// answered removes and returns the oldest request whose reply has this xid, or a request without a
// mark if there is none.
func (o *outstanding) answered(xid int32) unanswered {
	for i := o.head; i < len(o.list); i++ {
		if u := o.list[i]; u.xid == xid {
			copy(o.list[o.head+1:i+1], o.list[o.head:i])
			o.list[o.head] = unanswered{}
			o.head++
			if o.head == len(o.list) {
				o.list, o.head = o.list[:0], 0
			}
			return u
		}
	}
	return unanswered{}
}

// giveUp arms the rules of all outstanding replies again, because these replies will not come.
func (o *outstanding) giveUp() {
	for _, u := range o.list[o.head:] {
		if u.mark != nil {
			u.mark.rule.giveBack()
		}
	}
	*o = outstanding{}
}

// answerXid returns the xid of the reply to a request. All pings have the same xid.
func answerXid(h proto.RequestHeader) int32 {
	if h.Op == proto.OpPing {
		return proto.XidPing
	}
	return h.Xid
}
