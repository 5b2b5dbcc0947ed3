package server

import (
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/server/facts"
	"github.com/gozkd/gozkd/server/internal/meter"
)

// maxQuotaZnodes bounds how many znodes are read for quotas, because the tree's lock is held
// meanwhile.
const maxQuotaZnodes = 1000

// namespaceQuota is the quota of a child of the root. -1 means no limit.
type namespaceQuota struct {
	name                                 string
	countLimit, bytesLimit, count, bytes int64
}

// addQuotas appends the quotas of children of the root.
func (s *Server) addQuotas(l *facts.Values) {
	for _, q := range s.quotas() {
		l.AddKey("quota_count_limit_per_namespace", q.name, q.countLimit)
		l.AddKey("quota_bytes_limit_per_namespace", q.name, q.bytesLimit)
		l.AddKey("quota_count_usage_per_namespace", q.name, q.count)
		l.AddKey("quota_bytes_usage_per_namespace", q.name, q.bytes)
	}
}

// quotas reads the znodes of quotas.
func (s *Server) quotas() (list []namespaceQuota) {
	const root = "/zookeeper/quota"
	n := 0
	s.Walk(root, func(z Znode) bool {
		n++
		// The quota of /name is in the znodes /name/zookeeper_limits and /name/zookeeper_stats
		// below root, in this order.
		name, leaf, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(z.Path, root), "/"), "/")
		switch {
		case len(name) > meter.MaxNamespaceBytes:
		case leaf == "zookeeper_limits":
			limit := quotaNumbers(string(z.Data))
			list = append(list, namespaceQuota{
				name: name, countLimit: hardOrSoft(limit, "countHardLimit", "count"), bytesLimit: hardOrSoft(limit, "byteHardLimit", "bytes"),
			})
		case leaf == "zookeeper_stats":
			if i := len(list) - 1; i >= 0 && list[i].name == name {
				used := quotaNumbers(string(z.Data))
				list[i].count, list[i].bytes = used["count"], used["bytes"]
			}
		}
		return n < maxQuotaZnodes
	})
	return list
}

// hardOrSoft returns the hard limit or, if there is none, the soft limit.
func hardOrSoft(limits map[string]int64, hard, soft string) int64 {
	if v, ok := limits[hard]; ok && v > -1 {
		return v
	}
	if v, ok := limits[soft]; ok {
		return v
	}
	return -1
}

// quotaNumbers parses text like "count=4,bytes=-1=;byteHardLimit=20".
func quotaNumbers(text string) map[string]int64 {
	numbers := make(map[string]int64)
	for pair := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ';' }) {
		key, value, _ := strings.Cut(strings.TrimRight(pair, "="), "=")
		if v, err := strconv.ParseInt(value, 10, 64); err == nil {
			numbers[key] = v
		}
	}
	return numbers
}
