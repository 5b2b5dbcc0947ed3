package datatree_test

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
)

const quotaRoot = "/zookeeper/quota"

// quotaOf returns the nearest path at or above path that has a limits znode, "" if there is none. The root has none.
func (m *model) quotaOf(path string) string {
	for ; path != "/"; path = parentOf(path) {
		if m.nodes[quotaRoot+path+"/zookeeper_limits"] != nil {
			return path
		}
	}
	return ""
}

// parseQuota reads the text of limits and stats: keys that are absent are -1.
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

// quotaAllows is the last check of create and the one before the version of setData (spec 11.1).
func (m *model) quotaAllows(e env, path string, bytes, count int64) proto.ErrCode {
	q := m.quotaOf(path)
	if q == "" || e.req.Flags&datatree.FlagEnforceQuota == 0 {
		return proto.OK
	}
	limits, ok := parseQuota(m.nodes[quotaRoot+q+"/zookeeper_limits"].data)
	if !ok {
		return proto.ErrMarshallingError
	}
	stats := m.nodes[quotaRoot+q+"/zookeeper_stats"]
	if stats == nil {
		return proto.OK
	}
	used, ok := parseQuota(stats.data)
	if !ok {
		return proto.ErrMarshallingError
	}
	over := func(limit string, used, delta int64) bool {
		return delta != 0 && limits[limit] > -1 && used+delta > limits[limit]
	}
	if over("countHardLimit", used["count"], count) || over("byteHardLimit", used["bytes"], bytes) {
		return proto.ErrQuotaExceeded
	}
	return proto.OK
}

// account moves the stats of the nearest quota. The znode's own limits do not count: they lie under /zookeeper/quota.
func (m *model) account(path string, bytes, count int64) {
	stats := m.nodes[quotaRoot+m.quotaOf(path)+"/zookeeper_stats"]
	if m.quotaOf(path) == "" || stats == nil {
		return
	}
	if used, ok := parseQuota(stats.data); ok {
		stats.data = fmt.Appendf(nil, "count=%d,bytes=%d", used["count"]+count, used["bytes"]+bytes)
	}
}

// countQuota fills a stats znode that was just created.
func (m *model) countQuota(path string) {
	q, found := strings.CutSuffix(path, "/zookeeper_stats")
	if q, found = strings.CutPrefix(q, quotaRoot); !found || q == "" || !strings.HasSuffix(path, "/zookeeper_stats") {
		return
	}
	var count, bytes int64
	for p, n := range m.nodes {
		if below(p, q) {
			count++
			bytes += int64(len(n.data))
		}
	}
	m.nodes[path].data = fmt.Appendf(nil, "count=%d,bytes=%d", count, bytes)
}
