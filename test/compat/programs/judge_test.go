package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestKept(t *testing.T) {
	for _, c := range []struct {
		name         string
		acked, found []string
		want         string
	}{
		{"all, in another order", []string{"0", "1", "2"}, []string{"2", "0", "1"}, ""},
		{"one more, whose reply was lost", []string{"0", "1"}, []string{"0", "1", "2"}, ""},
		{"a record less", []string{"0", "1", "2"}, []string{"0", "2"}, `"1", acknowledged as number 2 of 3, is lost`},
		{"a record twice", []string{"0", "1"}, []string{"0", "1", "0"}, `"0" is there 2 times`},
		{"none acknowledged", nil, []string{"0"}, "nothing was acknowledged"},
	} {
		t.Run(c.name, func(t *testing.T) { expect(t, kept(c.acked, c.found), c.want) })
	}
}

func TestValues(t *testing.T) {
	output := "WARN acked 7\nacked 1/0\ngot 1\nacked 1/1\n\tacked 8\n"
	if got, want := values(output, "acked"), []string{"1/0", "1/1"}; !slices.Equal(got, want) {
		t.Errorf("values = %q, want %q", got, want)
	}
}

func TestBalanced(t *testing.T) {
	const view = "alive a\nalive b\ncontroller c\nreplica p0 a MASTER\nreplica p0 b SLAVE\nreplica p1 a SLAVE\nreplica p1 b MASTER\n"
	for _, c := range []struct{ name, old, replacement, want string }{
		{"balanced", "", "", ""},
		{"a dead participant", "alive b\n", "", "b, which is not alive"},
		{"two masters", "p1 a SLAVE", "p1 a MASTER", "the replicas of p1 are [MASTER MASTER]"},
		{"a replica less", "replica p0 b SLAVE\n", "", "the replicas of p0 are [MASTER]"},
		{"a partition less", "replica p1 a SLAVE\nreplica p1 b MASTER\n", "", "1 partitions have replicas"},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect(t, balanced(strings.Replace(view, c.old, c.replacement, 1), 2), c.want)
		})
	}
}

func TestOneMaster(t *testing.T) {
	var m masterships
	m.ended("a", "joined a\nbegin p0 100\nbegin p1 110\nend p0 200\nend p1 210\nbegin p1 400\n", time.UnixMilli(500))
	m.ended("b", "begin p0 200\nbegin p1 210\nend p1 300\n", time.UnixMilli(1000))
	if len(m) != 5 {
		t.Fatalf("masterships: %+v, want 5", m)
	}
	expect(t, oneMaster(m), "")
	m.ended("c", "begin p1 450\n", time.UnixMilli(1000))
	expect(t, oneMaster(m), "two masters at once")
	expect(t, oneMaster(nil), "there was no master")
}

func expect(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("error %v, want %q", err, want)
	}
}
