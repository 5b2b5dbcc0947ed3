package shell

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/subtree"
	"github.com/gozkd/gozkd/proto"
)

// The quota of /a/b is stored in two znodes below /zookeeper/quota/a/b.
const (
	quotaRoot  = "/zookeeper/quota"
	quotaLimit = "zookeeper_limits"
	quotaUsed  = "zookeeper_stats"
)

// quotaKeys maps the flags of setquota and delquota to keys.
var quotaKeys = map[string]string{
	"n": proto.QuotaCount, "b": proto.QuotaBytes, "N": proto.QuotaCountHard, "B": proto.QuotaBytesHard,
}

func limitPath(path string) string { return quotaRoot + path + "/" + quotaLimit }
func usedPath(path string) string  { return quotaRoot + path + "/" + quotaUsed }

func runSetQuota(ctx context.Context, c *call) error {
	path := c.args[0]
	if strings.HasPrefix(path, quotaRoot) {
		return failure("cannot set a quota under the path: " + quotaRoot)
	}
	limits, err := c.newLimits()
	if err != nil {
		return err
	}
	if _, ok, err := c.zk.Exists(ctx, path, false); err != nil {
		return err
	} else if !ok {
		return failure(path + " does not exist.")
	}
	for _, step := range []func(context.Context, string) error{c.checkNoQuotaBelow, c.checkNoQuotaAbove, c.createQuotaPath} {
		if err := step(ctx, path); err != nil {
			return err
		}
	}
	return c.storeQuota(ctx, path, limits)
}

// newLimits returns a quota with the limit that the flag of setquota sets.
func (c *call) newLimits() (proto.Quota, error) {
	q := proto.Quota{proto.QuotaCount: -1, proto.QuotaBytes: -1, proto.QuotaCountHard: -1, proto.QuotaBytesHard: -1}
	g := c.given[0]
	bits, least, what := 32, int64(1), "the num quota must be greater than zero"
	if strings.EqualFold(g.name, "b") {
		bits, least, what = 64, 0, "the bytes quota must be greater than or equal to zero"
	}
	n, err := strconv.ParseInt(g.value, 10, bits)
	switch {
	case err != nil:
		return nil, usageError("NumberFormatException happens when parsing the option value")
	case n < least:
		return nil, usageError(what)
	}
	q[quotaKeys[g.name]] = n
	return q, nil
}

// checkNoQuotaBelow fails if a znode below path has a quota.
func (c *call) checkNoQuotaBelow(ctx context.Context, path string) error {
	top := quotaRoot + path
	if err := checkPath(top); err != nil {
		return err
	}
	err := visit(ctx, c.zk, top, false, func(p string) error {
		names, _, err := c.zk.Children(ctx, p, false)
		if errors.Is(err, proto.ErrNoNode) {
			return nil
		}
		if err == nil && p != top && slices.Contains(names, quotaLimit) {
			return failure(path + " has a child " + strings.TrimPrefix(p, quotaRoot) + " which has a quota")
		}
		return err
	})
	if errors.Is(err, proto.ErrNoNode) {
		return nil
	}
	return err
}

// checkNoQuotaAbove fails if a znode above path has a quota.
func (c *call) checkNoQuotaAbove(ctx context.Context, path string) error {
	parts := strings.Split(path, "/")
	above := quotaRoot
	for _, part := range parts[1 : len(parts)-1] {
		above += "/" + part
		names, _, err := c.zk.Children(ctx, above, false)
		if errors.Is(err, proto.ErrNoNode) || err == nil && len(names) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		if slices.Contains(names, quotaLimit) {
			return failure(path + " has a parent " + strings.TrimPrefix(above, quotaRoot) + " which has a quota")
		}
	}
	return nil
}

// createQuotaPath creates the parents of the quota's znodes.
func (c *call) createQuotaPath(ctx context.Context, path string) error {
	for i, r := range quotaRoot + path + "/" {
		if r != '/' || i == 0 {
			continue
		}
		p := (quotaRoot + path)[:i]
		if _, ok, err := c.zk.Exists(ctx, p, false); err != nil {
			return err
		} else if ok {
			continue
		}
		if _, _, err := c.zk.Create(ctx, p, nil, client.CreateOptions{}); err != nil && !errors.Is(err, proto.ErrNodeExists) {
			return err
		}
	}
	return nil
}

// storeQuota creates the quota's znodes, or adds the limits to an existing quota.
func (c *call) storeQuota(ctx context.Context, path string, limits proto.Quota) error {
	_, exists, err := c.zk.Exists(ctx, limitPath(path), false)
	if err != nil {
		return err
	}
	if !exists {
		if _, _, err := c.zk.Create(ctx, limitPath(path), []byte(limits.String()), client.CreateOptions{}); err != nil {
			return err
		}
		zero := proto.Quota{proto.QuotaCount: 0, proto.QuotaBytes: 0}
		if _, _, err := c.zk.Create(ctx, usedPath(path), []byte(zero.String()), client.CreateOptions{}); err != nil {
			return err
		}
		limits = proto.Quota{}
	}
	q, err := c.readQuota(ctx, limitPath(path))
	if err != nil {
		return err
	}
	for key, v := range limits {
		if v > -1 {
			q[key] = v
		}
	}
	used, err := c.readQuota(ctx, usedPath(path))
	if err != nil {
		return err
	}
	c.warnExceeded(q, used)
	if !exists {
		return nil
	}
	_, err = c.zk.Set(ctx, limitPath(path), []byte(q.String()), client.AnyVersion)
	return err
}

func (c *call) readQuota(ctx context.Context, path string) (proto.Quota, error) {
	data, _, err := c.zk.Get(ctx, path, false)
	if err != nil {
		return nil, err
	}
	q, err := proto.ParseQuota(string(data))
	if err != nil {
		return nil, failure(fmt.Sprintf("not a quota: %q", data))
	}
	return q, nil
}

// warnExceeded reports limits below the current use.
func (c *call) warnExceeded(limit, used proto.Quota) {
	for _, k := range []struct{ soft, hard, what string }{
		{proto.QuotaCount, proto.QuotaCountHard, "count"},
		{proto.QuotaBytes, proto.QuotaBytesHard, "bytes"},
	} {
		have := used.Get(k.soft)
		over := func(key string) bool { return limit.Get(key) > -1 && limit.Get(key) < have }
		if over(k.soft) || over(k.hard) {
			c.note(fmt.Sprintf("[Warning]: the %s quota you create is less than the existing %s:%d", k.what, k.what, have))
		}
	}
}

func runListQuota(ctx context.Context, c *call) error {
	path := c.args[0]
	c.say(c.err, "absolute path is "+limitPath(path))
	var used proto.Quota
	limit, err := c.readQuota(ctx, limitPath(path))
	if err == nil {
		used, err = c.readQuota(ctx, usedPath(path))
	}
	if errors.Is(err, proto.ErrNoNode) {
		return noQuota(path)
	}
	if err != nil {
		return err
	}
	return c.print(struct {
		Path  string      `json:"path"`
		Limit proto.Quota `json:"quota"`
		Used  proto.Quota `json:"stat"`
	}{path, limit, used}, fmt.Sprintf("Output quota for %s %s\nOutput stat for %s %s\n", path, limit, path, used))
}

func noQuota(path string) error { return failure("quota for " + path + " does not exist.") }

func runDelQuota(ctx context.Context, c *call) error {
	path := c.args[0]
	if _, ok, err := c.zk.Exists(ctx, limitPath(path), false); err != nil {
		return err
	} else if !ok {
		c.note("Quota does not exist for " + path)
		return errFailed
	}
	err := c.deleteQuota(ctx, path)
	if errors.Is(err, proto.ErrNoNode) {
		return noQuota(path)
	}
	return err
}

// deleteQuota removes the limit that a flag names. Without a flag deleteQuota deletes the quota and
// the parents that are not needed any more.
func (c *call) deleteQuota(ctx context.Context, path string) error {
	if len(c.given) > 0 {
		q, err := c.readQuota(ctx, limitPath(path))
		if err != nil {
			return err
		}
		q[quotaKeys[c.given[0].name]] = -1
		_, err = c.zk.Set(ctx, limitPath(path), []byte(q.String()), client.AnyVersion)
		return err
	}
	top := quotaRoot + path
	names, _, err := c.zk.Children(ctx, top, false)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := c.zk.Delete(ctx, subtree.Join(top, name), client.AnyVersion); err != nil {
			return err
		}
	}
	for ; top != quotaRoot; top = proto.ParentPath(top) {
		names, _, err := c.zk.Children(ctx, top, false)
		if err != nil || len(names) > 0 {
			return err
		}
		if err := c.zk.Delete(ctx, top, client.AnyVersion); err != nil {
			return err
		}
	}
	return nil
}
