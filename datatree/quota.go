package datatree

import (
	"fmt"
	"strings"

	"github.com/gozkd/gozkd/proto"
)

// quota counts the znodes at and below a path, except those with a nearer quota. It exists as long
// as its limits znode. Its counts are always exact, and each change of a count updates the text of
// the stats znode.
type quota struct {
	path         string // not the root and not below /zookeeper
	count, bytes int64
}

// quotaTarget returns the path that a limits or stats znode applies to, if path is one.
func quotaTarget(path, name string) (string, bool) {
	target, ok := strings.CutPrefix(path, quotaPath)
	if !ok {
		return "", false
	}
	target, ok = strings.CutSuffix(target, name)
	// No quota applies below /zookeeper, because accounting itself writes there.
	return target, ok && strings.HasPrefix(target, "/") && !strings.HasPrefix(target+"/", zookeeperPath+"/")
}

// quotaOf returns the nearest quota for n, or nil.
func (st *state) quotaOf(n *znode) *quota {
	if len(st.quotas) == 0 {
		return nil
	}
	for ; n != nil; n = st.parent(n) {
		if q := st.quotas[n.path()]; q != nil {
			return q
		}
	}
	return nil
}

// quotaOfNew returns the quota for a new child of p at path. A quota may exist before its znode.
func (st *state) quotaOfNew(path string, p *znode) *quota {
	if q := st.quotas[path]; q != nil {
		return q
	}
	return st.quotaOf(p)
}

func (st *state) account(n *znode, count, bytes int64) { st.charge(st.quotaOf(n), count, bytes) }

// charge adds to the counts of q, unless q is nil.
func (st *state) charge(q *quota, count, bytes int64) {
	if q != nil {
		q.count += count
		q.bytes += bytes
		st.writeStats(q)
	}
}

func (st *state) quotaAfterInsert(n *znode) {
	if len(st.quotas) > 0 {
		r := n.record()
		st.account(n, 1, int64(len(r.data)))
	}
	path := n.path()
	if target, ok := quotaTarget(path, proto.QuotaLimits); ok {
		st.quotaOn(target)
	} else if target, ok := quotaTarget(path, proto.QuotaStats); ok && st.quotas[target] != nil {
		st.writeStats(st.quotas[target])
	}
}

func (st *state) quotaBeforeRemove(n *znode) {
	if len(st.quotas) == 0 {
		return
	}
	if target, ok := quotaTarget(n.path(), proto.QuotaLimits); ok {
		st.quotaOff(target)
	}
	r := n.record()
	st.account(n, -1, -int64(len(r.data)))
}

// quotaOn creates the quota of target. The quota above loses the counts of the new quota.
func (st *state) quotaOn(target string) {
	n := st.get(target)
	outer := st.quotaOf(n)
	q := &quota{path: target}
	st.quotas[target] = q
	if n != nil {
		st.countBelow(n, q)
	}
	st.writeStats(q)
	st.charge(outer, -q.count, -q.bytes)
}

// quotaOff returns the counts of target's quota to the quota above.
func (st *state) quotaOff(target string) {
	q := st.quotas[target]
	delete(st.quotas, target)
	st.charge(st.quotaOf(st.get(target)), q.count, q.bytes)
}

// countBelow adds n and its descendants to q, except those with a nearer quota.
func (st *state) countBelow(n *znode, q *quota) {
	q.count++
	r := n.record()
	q.bytes += int64(len(r.data))
	for _, id := range st.children(n) {
		if child := st.at(id); st.quotas[child.path()] == nil {
			st.countBelow(child, q)
		}
	}
}

// writeStats sets the stats znode, if clients have created it. Versions, zxids and times stay.
func (st *state) writeStats(q *quota) {
	if st.keepStats {
		return
	}
	n := st.get(quotaPath + q.path + proto.QuotaStats)
	if n == nil {
		return
	}
	rec := n.record()
	if text := fmt.Sprintf("count=%d,bytes=%d", q.count, q.bytes); text != rec.data {
		rec.data, rec.null = text, false
		st.replace(n, &rec)
	}
}

// checkQuota refuses a change at path that would exceed a hard limit of q, if the request has
// FlagEnforceQuota. Source: ZooKeeperServer.checkQuota, StatsTrack.
func (st *state) checkQuota(x *txn, q *quota, path string, count, bytes int64) proto.ErrCode {
	if q == nil || x.Flags&FlagEnforceQuota == 0 {
		return proto.OK
	}
	limitsPath := quotaPath + q.path + proto.QuotaLimits
	r := st.get(limitsPath).record()
	parsed, err := proto.ParseQuota(r.data)
	if err != nil {
		return x.refuse(proto.ErrMarshallingError, path, "%s: %v", limitsPath, err)
	}
	limits := struct{ count, bytes int64 }{parsed.Get(proto.QuotaCountHard), parsed.Get(proto.QuotaBytesHard)}
	if st.get(quotaPath+q.path+proto.QuotaStats) == nil {
		// Without a stats znode, ZooKeeper enforces nothing: it compares with that znode's text.
		return proto.OK
	}
	if limits.count >= 0 && count != 0 && q.count+count > limits.count {
		return x.refuse(proto.ErrQuotaExceeded, path, "%d znodes, quota of %s is %d", q.count+count, q.path, limits.count)
	}
	if limits.bytes >= 0 && bytes != 0 && q.bytes+bytes > limits.bytes {
		return x.refuse(proto.ErrQuotaExceeded, path, "%d bytes, quota of %s is %d", q.bytes+bytes, q.path, limits.bytes)
	}
	return proto.OK
}
