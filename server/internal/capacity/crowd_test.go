package capacity

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// A server with clients that come, set watches, leave and come back while the state grows and
// shrinks: connections and watches never take more than they may, a client with a session is let
// in while others are refused, and when clients leave all are let in again.
func TestCrowd_BoundedAndEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		allowed := rapid.Int64Range(2<<20, 1<<30).Draw(t, "allowed")
		weight, used, loading := int64(0), int64(0), false
		limit := func() int64 { return CrowdLimit(allowed, weight, loading) }
		come := func(n Newcomer, bytes int64) bool {
			if !n.Fits(used+bytes, limit()) {
				return false
			}
			used += bytes
			return true
		}
		t.Repeat(map[string]func(*rapid.T){
			"connections": func(t *rapid.T) {
				n := Newcomer(rapid.SampledFrom([]Newcomer{NewSession, Returning, NewConnection}).Draw(t, "newcomer"))
				for range rapid.IntRange(1, 100_000).Draw(t, "n") {
					if !come(n, ConnectionCost) {
						break
					}
				}
			},
			"leave": func(t *rapid.T) { used -= rapid.Int64Range(0, used).Draw(t, "bytes") },
			"state": func(t *rapid.T) {
				weight, loading = rapid.Int64Range(0, 2*allowed).Draw(t, "weight"), rapid.Bool().Draw(t, "loading")
				used = min(used, limit()) // the watches of some are removed with their connections
			},
			"all leave": func(t *rapid.T) {
				used = 0
				if !Resumes(used, limit()) {
					t.Fatalf("nobody is there, and it refuses: %d bytes are for connections", limit())
				}
			},
			"": func(t *rapid.T) {
				l := limit()
				if used > l {
					t.Fatalf("%d bytes of %d are in use", used, l)
				}
				least := max(allowed/16, fewConnections*ConnectionCost)
				if l < least || loading && l > least {
					t.Fatalf("%d of %d bytes are for connections", l, allowed)
				}
				if l > least && (l+weight > allowed/8*9 || l > allowed/4*3) {
					t.Fatalf("connections may take %d bytes, the state takes %d, and %d may live", l, weight, allowed)
				}
				news, claims := NewSession.Fits(used, l), Returning.Fits(used, l)
				if news && !claims || claims && !NewConnection.Fits(used, l) {
					t.Fatal("a new session is let in, and a client that comes back is not")
				}
			},
		})
	})
}

// A state that is as large as the clients leave it lets all of them come back, and what lives
// leaves room for garbage. While new sessions are let in, the state has room to grow.
func TestCrowd_ComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		allowed := rapid.Int64Range(2<<20, 1<<30).Draw(t, "allowed")
		used := rapid.Int64Range(0, CrowdLimit(allowed, 0, false)).Draw(t, "used")
		watches := rapid.Int64Range(0, WatchLimit(used)).Draw(t, "watches")
		weight := RoomBeside(allowed, used-watches, watches)
		limit := CrowdLimit(allowed, weight, false)
		if used > always(allowed) && weight > allowed/8 && watches > WatchLimit(limit)+8 {
			t.Errorf("beside %d bytes of data, clients with %d bytes of watches are disconnected: they may have %d", weight, watches, WatchLimit(limit))
		}
		if !NewSession.Fits(WatchLimit(limit)+ConnectionCost, limit) {
			t.Errorf("watches keep out all new sessions, with %d bytes for clients", limit)
		}
		if used > always(allowed) && weight > allowed/8 && limit < allowed/4*3 && !Returning.Fits(used-16, limit) {
			t.Errorf("%d bytes of connections do not fit beside %d, of %d: the limit is %d", used, weight, allowed, limit)
		}
		if most := allowed / 3 * 4; used > always(allowed) && allowed > 4*garbage && weight > allowed/8 && used+weight+ownCost+garbage > most {
			t.Errorf("%d and %d bytes leave no room for garbage, of %d", used, weight, most)
		}
		weighs := rapid.Int64Range(0, max(0, together(allowed)-256)).Draw(t, "weighs")
		if news := CrowdLimit(allowed, weighs, false) / 16 * int64(NewSession); RoomBeside(allowed, news, 0) <= weighs {
			t.Errorf("%d bytes of new sessions leave a state of %d no room, of %d", news, weighs, allowed)
		}
		if few := used <= always(allowed); weight < allowed/8 || few != (weight > allowed/8*9) {
			t.Errorf("the state may take %d, of %d", weight, allowed)
		}
	})
}

// TestCrowd_OfManyClients: 5,000 clients with 40 watches each fit one server with 200 MiB, and half
// of them come back to one that is full of data as well; a third of them fit with 64 MiB.
func TestCrowd_OfManyClients(t *testing.T) {
	const client = ConnectionCost + 40*(56+104+16)
	for _, c := range []struct {
		memory, clients, weight int64
		come                    Newcomer
	}{{180 << 20, 5000, 0, NewSession}, {180 << 20, 2500, 106 << 20, Returning}, {52 << 20, 1667, 7 << 20, NewSession}} {
		if limit := CrowdLimit(c.memory/100*75, c.weight, false); !c.come.Fits(c.clients*client, limit) {
			t.Errorf("%d clients take %d bytes; of %d with data of %d they may take %d",
				c.clients, c.clients*client, c.memory, c.weight, limit)
		}
	}
}

// Without a bound all fit. With one, whoever asks for the last byte of its share gets it, and the
// crowd ends when there is room for a session.
func TestCrowd_Bounds(t *testing.T) {
	if l := CrowdLimit(0, 1<<40, true); l != math.MaxInt64 {
		t.Errorf("without a bound, %d bytes are for connections", l)
	}
	if l := CrowdLimit(1, 0, false); l != fewConnections*ConnectionCost {
		t.Errorf("of a byte, %d bytes are for connections", l)
	}
	const limit = 16 << 20
	for n, share := range map[Newcomer]int64{NewSession: 14 << 20, Returning: 15 << 20, NewConnection: limit} {
		if !n.Fits(share, limit) || n.Fits(share+1, limit) {
			t.Errorf("the share of a newcomer %d is not %d", n, share)
		}
	}
	if room := int64(14<<20 - ConnectionCost); !Resumes(room, limit) || Resumes(room+1, limit) {
		t.Errorf("the crowd does not end at %d", room)
	}
}

// The clients of one address, as many as may come without another configuration, take no room from
// the data, however little memory there is.
func TestCrowd_OfOneAddress(t *testing.T) {
	const maxClientCnxns = 60
	if room := RoomBeside(1, maxClientCnxns*ConnectionCost, 0); room != math.MaxInt64 {
		t.Errorf("the clients of one address leave the data room for %d bytes", room)
	}
}
