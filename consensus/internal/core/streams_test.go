package core

import (
	"testing"

	"pgregory.net/rapid"
)

// TestC2_AcceptAgainstAModel: the model keeps, for each server, the list of all accepted requests.
func TestC2_AcceptAgainstAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Streams{}
		accepted := map[uint64][]StreamPosition{}
		small := rapid.Uint64Range(0, 4)
		for range rapid.IntRange(1, 60).Draw(t, "requests") {
			server := small.Draw(t, "server")
			r := StreamPosition{small.Draw(t, "incarnation") + 1, small.Draw(t, "number") + 1}
			ofRun, newest := uint64(0), uint64(0)
			for _, p := range accepted[server] {
				newest = max(newest, p.Incarnation)
				if p.Incarnation == r.Incarnation {
					ofRun++
				}
			}
			want := r.Incarnation >= newest && r.Number == ofRun+1
			if got := s.accept(server, r.Incarnation, r.Number); got != want {
				t.Fatalf("accept(%d, %v) = %v after %v", server, r, got, accepted[server])
			}
			if want {
				accepted[server] = append(accepted[server], r)
			}
		}
	})
}

// A stream with a steady number of pending requests allocates nothing, and keeps no request that
// was taken.
func TestOwnStream_Steady(t *testing.T) {
	const pending = 100
	o := ownStream{incarnation: 1, first: 1}
	for range pending {
		o.add(pendingRequest{ref: o.first})
	}
	ref := any(o.first) // so that only the stream could allocate
	if n := testing.AllocsPerRun(1, func() {
		for range 10 * pending {
			o.take(o.first)
			o.add(pendingRequest{ref: ref})
		}
	}); n > 0 {
		t.Errorf("%v allocations for %d requests", n, 10*pending)
	}
	held := 0
	for _, r := range o.array {
		if r.ref != nil {
			held++
		}
	}
	if held != pending {
		t.Errorf("the array holds %d requests, of which %d are pending", held, pending)
	}
	array := make([]pendingRequest, 16)
	o = ownStream{first: 1, pending: array[:2], array: array}
	o.take(1)
	if o.add(pendingRequest{}); &o.pending[0] != &array[1] {
		t.Error("requests are moved although there is room after them")
	}
}

// TestC2_OwnStreamKeepsRequestsUntilApplied: whatever is proposed and taken, the refs come back in
// order, and the other requests stay.
func TestC2_OwnStreamKeepsRequestsUntilApplied(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := ownStream{incarnation: 1, first: 1}
		put, took := uint64(0), uint64(0)
		t.Repeat(map[string]func(*rapid.T){
			"put":     func(*rapid.T) { put++; o.add(pendingRequest{nil, put}) },
			"propose": func(t *rapid.T) { o.sent = rapid.IntRange(o.sent, len(o.pending)).Draw(t, "proposed") },
			"leader":  func(*rapid.T) { o.sent = 0 },
			"take": func(t *rapid.T) {
				number := rapid.Uint64Range(0, put+2).Draw(t, "number")
				var want any
				if number == took+1 && number <= put {
					took++
					want = took
				}
				if ref := o.take(number); ref != want {
					t.Fatalf("take(%d) gives %v instead of %v, with %d of %d taken", number, ref, want, took, put)
				}
			},
			"": func(t *rapid.T) {
				if o.first != took+1 || len(o.pending) != int(put-took) || o.sent < 0 || o.sent > len(o.pending) {
					t.Fatalf("first %d, %d pending, %d proposed after %d put, %d taken", o.first, len(o.pending), o.sent, put, took)
				}
			},
		})
	})
}

// A member without state has no streams, and takes the first.
func TestStreams_OfAFreshMember(t *testing.T) {
	c := newFresh(t)
	if c.accept(9, 1, 1, nil); len(c.requests) != 1 {
		t.Errorf("%d requests", len(c.requests))
	}
}
