package web_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/web"
)

// The pages of a long list are pages of the server too, and show what has changed in between.
func TestChildren_PagesOfALongList(t *testing.T) {
	s := open(t, server.Config{}, web.Options{Anonymous: web.Read})
	zk := s.connect()
	s.create(zk, client.CreateOptions{}, "/p")
	var want []string
	for from := 0; from < 1500; from += 500 {
		var ops []client.Op
		for i := range 500 {
			want = append(want, fmt.Sprintf("n%d", from+i))
			ops = append(ops, client.CreateOp("/p/"+want[len(want)-1], nil, client.CreateOptions{}))
		}
		if _, err := zk.Multi(t.Context(), ops...); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(want)
	one := func(query string, limit int) (names []string, next string) {
		t.Helper()
		page := decode[struct {
			Children []struct{ Name string }
			Next     string
		}](t, s.want(200, "", "GET", fmt.Sprintf("/znodes/v2/p?children&limit=%d%s", limit, query), ""))
		for _, c := range page.Children {
			names = append(names, c.Name)
		}
		return names, page.Next
	}
	read := func(query string, limit int) (all []string) {
		t.Helper()
		for after := ""; ; {
			names, next := one(query+after, limit)
			if all = append(all, names...); next == "" {
				return all
			}
			after = "&after=" + next
		}
	}
	lists := func() (n string) {
		for _, v := range s.s.Facts().Monitor() {
			if v.Name == "gozkd_request_duration_seconds" && strings.HasPrefix(v.Key, "getChildren") {
				n += fmt.Sprint(v.Key, v.Is.(server.Histogram).Count(), " ")
			}
		}
		return n
	}
	if got := read("", 100); !slices.Equal(got, want) {
		t.Errorf("%d names", len(got))
	}
	before := lists()
	for _, after := range []string{"n1", "n2", "zz"} {
		s.want(200, "", "GET", "/znodes/v2/p?children&limit=10&after="+after, "")
	}
	if after := lists(); after != before {
		t.Errorf("a later page read the list: %s, before %s", after, before)
	}
	below := slices.DeleteFunc(slices.Clone(want), func(n string) bool { return !strings.HasPrefix(n, "n14") })
	for _, limit := range []int{1, 7, 111, 112} {
		if got := read("&prefix=n14", limit); !slices.Equal(got, below) {
			t.Errorf("limit %d: %q", limit, got)
		}
	}
	for _, skip := range []struct {
		query string
		want  []string
	}{
		{"&skip=0", want[:100]}, {"&skip=1", want[1:101]}, {"&skip=1450", want[1450:]}, {"&skip=1500", nil}, {"&skip=1000000", nil},
		{"&after=" + want[9] + "&skip=490", want[500:600]}, {"&prefix=n14&skip=100", below[100:]}, {"&prefix=n14&skip=111", nil},
	} {
		if got, _ := one(skip.query, 100); !slices.Equal(got, skip.want) {
			t.Errorf("%s: %q", skip.query, got)
		}
	}
	s.want(400, "skip", "GET", "/znodes/v2/p?children&skip=1000001", "")
	s.create(zk, client.CreateOptions{}, "/p/n1x")
	s.want(200, `"n1x"`, "GET", "/znodes/v2/p?children&limit=1&after=n199", "")
	if _, err := zk.SetACL(t.Context(), "/p", []proto.ACL{{Perms: 31, ID: proto.ID{Scheme: "ip", ID: "10.0.0.1"}}}, -1); err != nil {
		t.Fatal(err)
	}
	s.want(403, "-102", "GET", "/znodes/v2/p?children&after=n1", "")
}
