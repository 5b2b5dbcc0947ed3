package server

import (
	"strings"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/facts"
	"github.com/gozkd/gozkd/server/internal/meter"
)

// maxQuotaZnodes bounds how many znodes are read for quotas, as the tree's lock is held meanwhile.
const maxQuotaZnodes = 1000

// namespaceQuota is the quota of a child of the root. -1 means no limit.
type namespaceQuota struct {
	name                                 string
	countLimit, bytesLimit, count, bytes int64
}

func (f *Facts) addQuotas(l *facts.Values) {
	for _, q := range f.quotas() {
		l.AddKey("quota_count_limit_per_namespace", q.name, q.countLimit)
		l.AddKey("quota_bytes_limit_per_namespace", q.name, q.bytesLimit)
		l.AddKey("quota_count_usage_per_namespace", q.name, q.count)
		l.AddKey("quota_bytes_usage_per_namespace", q.name, q.bytes)
	}
}

// quotas reads the znodes of quotas. A state that was dropped has none.
func (f *Facts) quotas() (list []namespaceQuota) {
	n := 0
	visit := func(z Znode) bool {
		n++
		// Of the two znodes of a quota, that with the limits comes first.
		name, leaf, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(z.Path, proto.QuotaRoot), "/"), "/")
		switch {
		case len(name) > meter.MaxNamespaceBytes:
		case "/"+leaf == proto.QuotaLimits:
			limit, _ := proto.ParseQuota(string(z.Data)) // malformed: no limits
			list = append(list, namespaceQuota{
				name: name, countLimit: hardOrSoft(limit, proto.QuotaCountHard, proto.QuotaCount), bytesLimit: hardOrSoft(limit, proto.QuotaBytesHard, proto.QuotaBytes),
			})
		case "/"+leaf == proto.QuotaStats:
			if i := len(list) - 1; i >= 0 && list[i].name == name {
				used, _ := proto.ParseQuota(string(z.Data))
				list[i].count, list[i].bytes = used.Get(proto.QuotaCount), used.Get(proto.QuotaBytes)
			}
		}
		return n < maxQuotaZnodes
	}
	_ = f.state.look(func() { f.state.tree.Walk(proto.QuotaRoot, visit) })
	return list
}

func hardOrSoft(limits proto.Quota, hard, soft string) int64 {
	if v := limits.Get(hard); v > -1 {
		return v
	}
	return limits.Get(soft)
}
