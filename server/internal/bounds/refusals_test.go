package bounds

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Clients that are refused again whenever they are read cost a server its rate, or a refusal of
// each client and pause if that is more. Hosts share the rate in equal parts, and use it up. No
// pause is longer than a second or an eighth of the timeout.
func TestRefusals_Rate(t *testing.T) {
	const length = 2 * time.Second
	rapid.Check(t, func(t *rapid.T) {
		type sender struct {
			host string
			next time.Time
		}
		var r Refusals
		var senders []sender
		begin := time.Unix(1, 0)
		bytes := rapid.IntRange(0, 1<<20).Draw(t, "bytes")
		timeout := time.Duration(rapid.IntRange(1, 20).Draw(t, "timeout")) * time.Second
		most, hosts := min(time.Second, timeout/8), rapid.IntRange(1, 5).Draw(t, "hosts")
		clients := map[string]int{}
		for i := range hosts {
			host := fmt.Sprint(i)
			clients[host] = rapid.IntRange(1, 40).Draw(t, "clients")
			for range clients[host] {
				senders = append(senders, sender{host, begin})
			}
		}
		spent := map[string]float64{}
		cost := float64(bytes + 64<<10)
		for {
			first := &senders[0]
			for i := range senders {
				if senders[i].next.Before(first.next) {
					first = &senders[i]
				}
			}
			if first.next.Sub(begin) >= length {
				break
			}
			wait := r.Charge(first.host, bytes, timeout, first.next)
			if wait <= 0 || wait > most {
				t.Fatalf("a pause of %v with a timeout of %v", wait, timeout)
			}
			spent[first.host] += cost
			first.next = first.next.Add(wait)
		}
		share := float64(64<<20) / float64(hosts) * length.Seconds()
		for host, n := range clients {
			least := float64(n) * cost * length.Seconds() / most.Seconds() // if all pauses are the longest
			// At first nobody owes anything, and the first host has the whole rate.
			if all := float64(n) * cost; spent[host] < share*0.8-all || spent[host] > max(share, least)*1.25+2*all {
				t.Errorf("%d clients of one of %d hosts cost %.0f bytes of %.0f or %.0f", n, hosts, spent[host], share, least)
			}
		}
		alone := new(Refusals).Charge("later", 0, timeout, begin)
		if wait := r.Charge("later", 0, timeout, begin.Add(time.Hour)); len(r.owing) != 1 || wait != alone {
			t.Errorf("%d hosts are remembered that owe nothing; a pause of %v, alone %v", len(r.owing)-1, wait, alone)
		}
	})
}
