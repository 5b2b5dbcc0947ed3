package faultproxy

import "github.com/gozkd/gozkd/proto"

// mark says what becomes of an answer.
type mark struct {
	rule *Armed
	body []byte // Fail only: of the answer; nil: the code goes into the header
}

// unanswered is a request that the server has not answered yet.
type unanswered struct {
	xid   int32 // of the answer
	close bool  // it ends the session
	mark  *mark // nil: the answer passes
}

// outstanding are the requests that the server has not answered, in the order in which they came. Answers come in that order
// too, except those to auth and sasl and that to an unknown op, which come sooner. All are kept, because an xid alone does not
// name one: pings have the same, and a client may use any other twice.
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

// answered removes and returns the oldest request that is answered with xid. If there is none, it returns one without a mark.
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

// giveUp arms the rules again whose answers did not come.
func (o *outstanding) giveUp() {
	for _, u := range o.list[o.head:] {
		if u.mark != nil {
			u.mark.rule.giveBack()
		}
	}
	*o = outstanding{}
}

// answerXid returns the xid of the answer to a request: that of a ping is always the same.
func answerXid(h proto.RequestHeader) int32 {
	if h.Op == proto.OpPing {
		return proto.XidPing
	}
	return h.Xid
}
