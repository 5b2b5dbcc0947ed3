package server

import (
	"strings"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/facts"
	"github.com/gozkd/gozkd/server/internal/meter"
)

// maxQuotaZnodes bounds how many znodes are read for quotas, as the tree's lock is held meanwhile.
const maxQuotaZnodes = 1000

// addQuotas appends the quotas of children of the root, -1 for no limit, from the znodes of quotas.
// A state that was dropped has none.
func (f *Facts) addQuotas(l *facts.Values) {
	n, limited := 0, ""
	visit := func(z Znode) bool {
		n++
		// Of the two znodes of a quota, that with the limits comes first.
		name, leaf, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(z.Path, proto.QuotaRoot), "/"), "/")
		q, _ := proto.ParseQuota(string(z.Data)) // malformed: no limits
		switch {
		case len(name) > meter.MaxNamespaceBytes:
		case "/"+leaf == proto.QuotaLimits:
			l.AddKey("quota_count_limit_per_namespace", name, hardOrSoft(q, proto.QuotaCountHard, proto.QuotaCount))
			l.AddKey("quota_bytes_limit_per_namespace", name, hardOrSoft(q, proto.QuotaBytesHard, proto.QuotaBytes))
			limited = name
		case "/"+leaf == proto.QuotaStats && name == limited:
			l.AddKey("quota_count_usage_per_namespace", name, q.Get(proto.QuotaCount))
			l.AddKey("quota_bytes_usage_per_namespace", name, q.Get(proto.QuotaBytes))
		}
		return n < maxQuotaZnodes
	}
	_ = f.state.look(func() { f.state.tree.Walk(proto.QuotaRoot, visit) })
}

func hardOrSoft(limits proto.Quota, hard, soft string) int64 {
	if v := limits.Get(hard); v > -1 {
		return v
	}
	return limits.Get(soft)
}
