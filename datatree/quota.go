package datatree

import (
	"fmt"
	"strings"

	"github.com/gozkd/gozkd/proto"
)

// The znodes below /zookeeper/quota/<path> that define a quota for <path>.
const (
	limitsName = "/zookeeper_limits"
	statsName  = "/zookeeper_stats"
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
	return target, ok && strings.HasPrefix(target, "/") && target != zookeeperPath && !strings.HasPrefix(target, zookeeperPath+"/")
}

// quotaOf returns the nearest quota for n, or nil.
func (t *Tree) quotaOf(n *znode) *quota {
	if len(t.quotas) == 0 {
		return nil
	}
	for ; n != nil; n = t.parent(n) {
		if q := t.quotas[n.path()]; q != nil {
			return q
		}
	}
	return nil
}

// quotaOfNew returns the quota for a new child of p at path. A quota may exist before its znode.
func (t *Tree) quotaOfNew(path string, p *znode) *quota {
	if q := t.quotas[path]; q != nil {
		return q
	}
	return t.quotaOf(p)
}

// account adds a change of n to its quota.
func (t *Tree) account(n *znode, count, bytes int64) {
	if q := t.quotaOf(n); q != nil {
		q.count += count
		q.bytes += bytes
		t.writeStats(q)
	}
}

func (t *Tree) quotaAfterInsert(n *znode) {
	if len(t.quotas) > 0 {
		r := n.record()
		t.account(n, 1, int64(len(r.data)))
	}
	path := n.path()
	if target, ok := quotaTarget(path, limitsName); ok {
		t.quotaOn(target)
	} else if target, ok := quotaTarget(path, statsName); ok && t.quotas[target] != nil {
		t.writeStats(t.quotas[target])
	}
}

func (t *Tree) quotaBeforeRemove(n *znode) {
	if len(t.quotas) == 0 {
		return
	}
	if target, ok := quotaTarget(n.path(), limitsName); ok {
		t.quotaOff(target)
	}
	r := n.record()
	t.account(n, -1, -int64(len(r.data)))
}

// quotaOn creates the quota of target. The quota above loses the counts of the new quota.
func (t *Tree) quotaOn(target string) {
	n := t.get(target)
	outer := t.quotaOf(n)
	q := &quota{path: target}
	t.quotas[target] = q
	if n != nil {
		t.countBelow(n, q)
	}
	t.writeStats(q)
	if outer != nil {
		outer.count -= q.count
		outer.bytes -= q.bytes
		t.writeStats(outer)
	}
}

// quotaOff returns the counts of target's quota to the quota above.
func (t *Tree) quotaOff(target string) {
	q := t.quotas[target]
	delete(t.quotas, target)
	if outer := t.quotaOf(t.get(target)); outer != nil {
		outer.count += q.count
		outer.bytes += q.bytes
		t.writeStats(outer)
	}
}

// countBelow adds n and its descendants to q, except those with a nearer quota.
func (t *Tree) countBelow(n *znode, q *quota) {
	q.count++
	r := n.record()
	q.bytes += int64(len(r.data))
	for _, id := range t.children(n) {
		if child := t.at(id); t.quotas[child.path()] == nil {
			t.countBelow(child, q)
		}
	}
}

// writeStats writes the counts into the stats znode, if clients have created it. Versions, zxids
// and times stay.
func (t *Tree) writeStats(q *quota) {
	if t.keepStats {
		return
	}
	n := t.get(quotaPath + q.path + statsName)
	if n == nil {
		return
	}
	rec := n.record()
	if text := fmt.Sprintf("count=%d,bytes=%d", q.count, q.bytes); text != rec.data {
		rec.data, rec.null = text, false
		t.replace(n, &rec)
	}
}

// checkQuota refuses a change at path that would exceed a hard limit of q, if the request has
// FlagEnforceQuota. Source: ZooKeeperServer.checkQuota, StatsTrack.
func (t *Tree) checkQuota(x *txn, q *quota, path string, count, bytes int64) proto.ErrCode {
	if q == nil || x.Flags&FlagEnforceQuota == 0 {
		return proto.OK
	}
	limitsPath := quotaPath + q.path + limitsName
	r := t.get(limitsPath).record()
	parsed, err := proto.ParseQuota(r.data)
	if err != nil {
		x.res.Why = fmt.Sprintf("%v of %q refused: %s: %v", x.Op, path, limitsPath, err)
		return proto.ErrMarshallingError
	}
	limits := struct{ count, bytes int64 }{parsed.Get(proto.QuotaCountHard), parsed.Get(proto.QuotaBytesHard)}
	if t.get(quotaPath+q.path+statsName) == nil {
		// Without a stats znode, ZooKeeper enforces nothing: it compares with that znode's text.
		return proto.OK
	}
	if limits.count >= 0 && count != 0 && q.count+count > limits.count {
		x.res.Why = fmt.Sprintf("%v of %q refused: %d znodes, quota of %s is %d", x.Op, path, q.count+count, q.path, limits.count)
		return proto.ErrQuotaExceeded
	}
	if limits.bytes >= 0 && bytes != 0 && q.bytes+bytes > limits.bytes {
		x.res.Why = fmt.Sprintf("%v of %q refused: %d bytes, quota of %s is %d", x.Op, path, q.bytes+bytes, q.path, limits.bytes)
		return proto.ErrQuotaExceeded
	}
	return proto.OK
}
