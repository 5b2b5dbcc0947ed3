package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
)

// Where quotas are: a znode below quotaRoot for each on the way, with two below the one whose quota it is.
const (
	quotaRoot  = "/zookeeper/quota"
	quotaLimit = "zookeeper_limits"
	quotaUsed  = "zookeeper_stats"
)

func limitPath(path string) string { return quotaRoot + path + "/" + quotaLimit }

func runSetQuota(ctx context.Context, c *call) error {
	path := c.args[0]
	if strings.HasPrefix(path, quotaRoot) {
		return failure("cannot set a quota under the path: " + quotaRoot)
	}
	set, err := c.quota()
	if err != nil {
		return err
	}
	if err := checkPath(path); err != nil {
		return err
	}
	if _, ok, err := c.zk.Exists(ctx, path, false); err != nil {
		return err
	} else if !ok {
		return failure(path + " does not exist.")
	}
	if err := c.noQuotaBelow(ctx, path); err != nil {
		return err
	}
	if err := c.noQuotaAbove(ctx, path); err != nil {
		return err
	}
	if err := c.makeQuotaPath(ctx, path); err != nil {
		return err
	}
	return c.storeQuota(ctx, path, set)
}

// quota reads the flag of setquota: a quota with one limit.
func (c *call) quota() (quotaStats, error) {
	q := newQuota()
	g := c.given[0]
	key, bits, least, what := quotaCount, 32, int64(1), "the num quota must be greater than zero"
	switch g.name {
	case "N":
		key = quotaCountHard
	case "b":
		key, bits = quotaBytes, 64
	case "B":
		key, bits = quotaBytesHard, 64
	}
	if bits == 64 {
		least, what = 0, "the bytes quota must be greater than or equal to zero"
	}
	n, err := strconv.ParseInt(g.value, 10, bits)
	switch {
	case err != nil:
		return nil, usageError("NumberFormatException happens when parsing the option value")
	case n < least:
		return nil, usageError(what)
	}
	q[key] = n
	return q, nil
}

// noQuotaBelow fails if a znode below path has a quota.
func (c *call) noQuotaBelow(ctx context.Context, path string) error {
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

// noQuotaAbove fails if a znode above path has a quota.
func (c *call) noQuotaAbove(ctx context.Context, path string) error {
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

// makeQuotaPath makes the znodes that the quota's own are to be below.
func (c *call) makeQuotaPath(ctx context.Context, path string) error {
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

// storeQuota makes the quota's znodes, or puts the limits that are set into those that are there.
func (c *call) storeQuota(ctx context.Context, path string, set quotaStats) error {
	limit, used := limitPath(path), quotaRoot+path+"/"+quotaUsed
	_, ok, err := c.zk.Exists(ctx, limit, false)
	if err != nil {
		return err
	}
	if !ok {
		if _, _, err := c.zk.Create(ctx, limit, []byte(set.String()), client.CreateOptions{}); err != nil {
			return err
		}
		zero := quotaStats{quotaCount: 0, quotaBytes: 0}
		if _, _, err := c.zk.Create(ctx, used, []byte(zero.String()), client.CreateOptions{}); err != nil {
			return err
		}
		set = quotaStats{}
	}
	q, err := c.readQuota(ctx, limit)
	if err != nil {
		return err
	}
	for key, v := range set {
		if v > -1 {
			q[key] = v
		}
	}
	have, err := c.readQuota(ctx, used)
	if err != nil {
		return err
	}
	c.warnExceeded(q, have)
	if !ok {
		return nil
	}
	_, err = c.zk.Set(ctx, limit, []byte(q.String()), client.AnyVersion)
	return err
}

func (c *call) readQuota(ctx context.Context, path string) (quotaStats, error) {
	data, _, err := c.zk.Get(ctx, path, false)
	if err != nil {
		return nil, err
	}
	return parseQuota(data)
}

// warnExceeded tells of limits that are exceeded already.
func (c *call) warnExceeded(limit, used quotaStats) {
	for _, k := range []struct{ soft, hard, what string }{
		{quotaCount, quotaCountHard, "count"},
		{quotaBytes, quotaBytesHard, "bytes"},
	} {
		have := used.get(k.soft)
		over := func(key string) bool { return limit.get(key) > -1 && limit.get(key) < have }
		if over(k.soft) || over(k.hard) {
			c.note(fmt.Sprintf("[Warning]: the %s quota you create is less than the existing %s:%d", k.what, k.what, have))
		}
	}
}

func runListQuota(ctx context.Context, c *call) error {
	path := c.args[0]
	c.say(c.err, "absolute path is "+limitPath(path))
	if err := checkPath(limitPath(path)); err != nil {
		return err
	}
	limit, err := c.readQuota(ctx, limitPath(path))
	if errors.Is(err, proto.ErrNoNode) {
		return noQuota(path)
	}
	if err != nil {
		return err
	}
	used, err := c.readQuota(ctx, quotaRoot+path+"/"+quotaUsed)
	if errors.Is(err, proto.ErrNoNode) {
		return noQuota(path)
	}
	if err != nil {
		return err
	}
	return c.show(quotaResult{path, limit, used})
}

func noQuota(path string) error { return failure("quota for " + path + " does not exist.") }

type quotaResult struct {
	Path  string     `json:"path"`
	Limit quotaStats `json:"quota"`
	Used  quotaStats `json:"stat"`
}

func (r quotaResult) text(out, _ io.Writer) {
	_, _ = fmt.Fprintf(out, "Output quota for %s %s\nOutput stat for %s %s\n", r.Path, r.Limit, r.Path, r.Used)
}

func runDelQuota(ctx context.Context, c *call) error {
	path := c.args[0]
	limit := limitPath(path)
	if err := checkPath(limit); err != nil {
		return err
	}
	if _, ok, err := c.zk.Exists(ctx, limit, false); err != nil {
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

// deleteQuota takes away the limit that a flag names, without one the quota and the znodes above it that nobody needs.
func (c *call) deleteQuota(ctx context.Context, path string) error {
	if len(c.given) > 0 {
		q, err := c.readQuota(ctx, limitPath(path))
		if err != nil {
			return err
		}
		q[map[string]string{"n": quotaCount, "b": quotaBytes, "N": quotaCountHard, "B": quotaBytesHard}[c.given[0].name]] = -1
		_, err = c.zk.Set(ctx, limitPath(path), []byte(q.String()), client.AnyVersion)
		return err
	}
	top := quotaRoot + path
	names, _, err := c.zk.Children(ctx, top, false)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := c.zk.Delete(ctx, join(top, name), client.AnyVersion); err != nil {
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
