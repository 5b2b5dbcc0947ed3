package datatree_test

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
)

const quotaRoot = "/zookeeper/quota"

// quotaOf returns the nearest path at or above path that has a limits znode, "" if there is none.
// The root and paths below /zookeeper have none.
func (m *model) quotaOf(path string) string {
	if below(path, "/zookeeper") {
		return ""
	}
	for ; path != "/"; path = parentOf(path) {
		if m.nodes[quotaRoot+path+"/zookeeper_limits"] != nil {
			return path
		}
	}
	return ""
}

// used counts the znodes at and below q that have no nearer quota, and the bytes of their data.
func (m *model) used(q string) (count, bytes int64) {
	for p, n := range m.nodes {
		if m.quotaOf(p) == q {
			count++
			bytes += int64(len(n.data))
		}
	}
	return count, bytes
}

// parseQuota parses the text of limits and stats. Absent keys are -1.
func parseQuota(text []byte) (map[string]int64, bool) {
	v := map[string]int64{"count": -1, "bytes": -1, "countHardLimit": -1, "byteHardLimit": -1}
	for _, pair := range strings.FieldsFunc(string(text), func(r rune) bool { return r == ',' || r == ';' }) {
		key, value, ok := strings.Cut(pair, "=")
		n, err := strconv.ParseInt(strings.TrimSuffix(value, "="), 10, 64)
		if !ok || err != nil {
			return nil, false
		}
		v[key] = n
	}
	return v, true
}

// quotaAllows is the last check of create, and the check before the version in setData (spec 11.1).
func (m *model) quotaAllows(e env, path string, bytes, count int64) proto.ErrCode {
	q := m.quotaOf(path)
	if q == "" || e.req.Flags&datatree.FlagEnforceQuota == 0 {
		return proto.OK
	}
	limits, ok := parseQuota(m.nodes[quotaRoot+q+"/zookeeper_limits"].data)
	if !ok {
		return proto.ErrMarshallingError
	}
	if m.nodes[quotaRoot+q+"/zookeeper_stats"] == nil {
		return proto.OK // behavior of 3.9.5
	}
	usedCount, usedBytes := m.used(q)
	over := func(limit string, used, delta int64) bool {
		return delta != 0 && limits[limit] > -1 && used+delta > limits[limit]
	}
	if over("countHardLimit", usedCount, count) || over("byteHardLimit", usedBytes, bytes) {
		return proto.ErrQuotaExceeded
	}
	return proto.OK
}

// recount computes the stats of all quotas. ZooKeeper updates them by differences, which go wrong
// after a limits znode was deleted and recreated, or while there is no stats znode; the tree
// promises exact counts.
func (m *model) recount() {
	for path, stats := range m.nodes {
		q, found := strings.CutSuffix(path, "/zookeeper_stats")
		q = strings.TrimPrefix(q, quotaRoot)
		if !found || q == "" || m.quotaOf(q) != q { // a quota may exist before its znode
			continue
		}
		count, bytes := m.used(q)
		stats.data = fmt.Appendf(nil, "count=%d,bytes=%d", count, bytes)
	}
}
