package identity

import (
	"slices"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/proto"
)

// The orders are those of a set of org.apache.zookeeper.data.Id in ZooKeeper 3.9.5 on JDK 17.
func TestOrder_AsZooKeeper(t *testing.T) {
	parse := func(text string) (ids []proto.ID) {
		for _, id := range strings.Split(text, "  ") {
			scheme, id, _ := strings.Cut(id, "|")
			ids = append(ids, proto.ID{Scheme: scheme, ID: id})
		}
		return ids
	}
	for _, c := range []struct{ added, want string }{
		{"ip|127.0.0.1  x509|CN=alice", "x509|CN=alice  ip|127.0.0.1"},
		{"ip|127.0.0.1  super|CN=alice  x509|CN=alice", "super|CN=alice  x509|CN=alice  ip|127.0.0.1"},
		{
			"ip|127.0.0.1  digest|bob:G+9hVCzGUI7fvTM9zF+D3c0/ANg=  digest|eve:+7K83PhyQ3ijGj0ADmljf0quVwQ=",
			"digest|eve:+7K83PhyQ3ijGj0ADmljf0quVwQ=  ip|127.0.0.1  digest|bob:G+9hVCzGUI7fvTM9zF+D3c0/ANg=",
		},
		{"ip|10.1.2.3  super|  digest|super:D/InIHSb7yEEbrWz8b9l71RjZJU=  sasl|bob", "super|  sasl|bob  ip|10.1.2.3  digest|super:D/InIHSb7yEEbrWz8b9l71RjZJU="},
	} {
		ids := parse(c.added)
		if order(ids); !slices.Equal(ids, parse(c.want)) {
			t.Errorf("%v, want %s", ids, c.want)
		}
	}
	// Beyond 12 the set grows, and the order of those in one slot is not ours.
	const many = "digest|a:b  digest|q:r  digest|o:p  digest|e:f  digest|u:v  x509|CN=Größe 😀,O=Ex  ip|127.0.0.1  digest|c:d  digest|s:t  digest|g:h  sasl|i@J  digest|m:n  digest|k:l"
	ids, slot := parse(many), uint32(0)
	for _, id := range ids {
		if next := slotOf(id) & 31; next < slot {
			t.Errorf("%v is in slot %d, after %d", id, next, slot)
		} else {
			slot = next
		}
	}
}
