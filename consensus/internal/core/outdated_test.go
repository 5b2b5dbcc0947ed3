package core

import (
	"testing"

	"go.etcd.io/raft/v3/raftpb"
)

func TestIncarnations_AppendAndRead(t *testing.T) {
	c := &Core{streams: Streams{1: {300, 4}, 7: {5, 1}}}
	b := c.AppendIncarnations(nil)
	for server, want := range map[uint64]uint64{1: 300, 7: 5, 2: 0} {
		r := Uvarints{Rest: b}
		if got := ReadIncarnation(&r, server); got != want || r.Bad {
			t.Errorf("server %d has incarnation %d, want %d", server, got, want)
		}
	}
	if r := (Uvarints{}); ReadIncarnation(&r, 1) != 0 || !r.Bad {
		t.Error("a hello without incarnations is taken")
	}
	for n := range b[1:] { // a hello that was cut off must not look like knowledge of another server
		r := Uvarints{Rest: b[:1+n]}
		if got := ReadIncarnation(&r, 7); got != 0 {
			t.Errorf("%d of %d bytes: incarnation %d", 1+n, len(b), got)
		}
	}
}

// Only the answer of the disk to the mark makes the mark durable.
func TestOutdated_OtherWrites(t *testing.T) {
	c := newOutdated(t, 5)
	if c.Admission.persisted(&raftpb.Message{}) || c.Admission.past.durable {
		t.Error("another write confirms the mark")
	}
	confirm := c.Admission.MarkAppend().GetResponses()[0]
	if !c.Admission.persisted(confirm) || !c.Admission.past.durable || confirm.GetTo() != c.id {
		t.Error("the mark is not confirmed")
	}
	c.stepAnswer(t, 2, &joinAnswer{nonce: 7, state: joinAdmitted, term: 8})
	if c.Admission.persisted(confirm) || c.Admission.past.durable {
		t.Error("the confirmation of an earlier mark counts after the member was let in")
	}
	young := newYoung(t)
	if len(young.Admission.MarkAppend().GetResponses()) > 0 {
		t.Error("the mark of a member that takes part waits for an answer")
	}
}
