package shell

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/subtree"
	"github.com/gozkd/gozkd/proto"
)

const quotaRoot = proto.QuotaRoot

var quotaKeys = map[string]string{
	"n": proto.QuotaCount, "b": proto.QuotaBytes, "N": proto.QuotaCountHard, "B": proto.QuotaBytesHard,
	"r": proto.QuotaOps, "w": proto.QuotaByteRate,
}

func limitPath(path string) string  { return quotaRoot + path + proto.QuotaLimits }
func usedPath(path string) string   { return quotaRoot + path + proto.QuotaStats }
func budgetPath(path string) string { return quotaRoot + path + proto.QuotaBudget }

// quotaTarget returns the path below quotaRoot for an argument, which is a path or scheme:id.
func quotaTarget(arg string) string {
	if strings.HasPrefix(arg, "/") || !strings.Contains(arg, ":") {
		return arg
	}
	return proto.QuotaIdentities + url.PathEscape(arg)
}

func (c *call) budgets() bool {
	return c.has("r") || c.has("w")
}

func runSetQuota(ctx context.Context, c *call) error {
	path := c.args[0]
	if c.budgets() {
		return c.setBudget(ctx, path)
	}
	if strings.HasPrefix(path, quotaRoot) {
		return failure("cannot set a quota under the path: " + quotaRoot)
	}
	limits, err := c.newLimits()
	if err != nil {
		return err
	}
	for _, step := range []func(context.Context, string) error{c.mustExist, c.checkNoQuotaBelow, c.checkNoQuotaAbove} {
		if err := step(ctx, path); err != nil {
			return err
		}
	}
	if err := c.createAll(ctx, quotaRoot+path); err != nil {
		return err
	}
	return c.storeQuota(ctx, path, limits)
}

func (c *call) mustExist(ctx context.Context, path string) error {
	_, ok, err := c.zk.Exists(ctx, path, false)
	if err == nil && !ok {
		err = failure(path + " does not exist.")
	}
	return err
}

// setBudget sets the operations or bytes per second of a path or an identity.
func (c *call) setBudget(ctx context.Context, arg string) error {
	limits, err := c.newLimits()
	if err != nil {
		return err
	}
	target := quotaTarget(arg)
	if scheme, id, _ := strings.Cut(arg, ":"); target != arg {
		if id == "" || slices.Contains([]string{"", "world", "auth", "super"}, scheme) {
			return failure(arg + " cannot have a budget: choose an identity of a client, such as sasl:batch, or a path")
		}
	} else if err := c.mustExist(ctx, arg); err != nil {
		return err
	} else if arg == "/" || strings.HasPrefix(arg+"/", "/zookeeper/") {
		return failure(arg + " cannot have a budget: choose a znode below / that is not /zookeeper")
	}
	if err := c.createAll(ctx, quotaRoot+target); err != nil {
		return err
	}
	key := quotaKeys[c.given[0].name]
	q, err := c.readQuota(ctx, budgetPath(target), true)
	switch {
	case errors.Is(err, proto.ErrNoNode):
		q = proto.Quota{key: limits[key]}
		_, _, err = c.zk.Create(ctx, budgetPath(target), []byte(q.String()), client.CreateOptions{})
		return err
	case err != nil:
		return err
	}
	q[key] = limits[key]
	_, err = c.zk.Set(ctx, budgetPath(target), []byte(q.String()), client.AnyVersion)
	return err
}

// newLimits returns a quota with the limit that the flag of setquota sets.
func (c *call) newLimits() (proto.Quota, error) {
	q := proto.Quota{proto.QuotaCount: -1, proto.QuotaBytes: -1, proto.QuotaCountHard: -1, proto.QuotaBytesHard: -1}
	g := c.given[0]
	bits, least, what := 32, int64(1), "the num quota must be greater than zero"
	switch {
	case strings.EqualFold(g.name, "b"):
		bits, least, what = 64, 0, "the bytes quota must be greater than or equal to zero"
	case c.budgets():
		bits, what = 64, "a budget must be greater than zero"
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
	err := visit(ctx, c.zk, top, false, func(p string) error {
		names, _, err := c.zk.Children(ctx, p, false)
		if errors.Is(err, proto.ErrNoNode) {
			return nil
		}
		if err == nil && p != top && slices.Contains(names, proto.QuotaLimits[1:]) {
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
		if slices.Contains(names, proto.QuotaLimits[1:]) {
			return failure(path + " has a parent " + strings.TrimPrefix(above, quotaRoot) + " which has a quota")
		}
	}
	return nil
}

// createAll creates a znode and its parents, unless they exist.
func (c *call) createAll(ctx context.Context, path string) error {
	if _, ok, err := c.zk.Exists(ctx, path, false); err != nil || ok || path == "/" {
		return err
	}
	if err := c.createAll(ctx, proto.ParentPath(path)); err != nil {
		return err
	}
	if _, _, err := c.zk.Create(ctx, path, nil, client.CreateOptions{}); !errors.Is(err, proto.ErrNodeExists) {
		return err
	}
	return nil
}

// storeQuota creates the quota's znodes, or adds the limits to an existing quota.
func (c *call) storeQuota(ctx context.Context, path string, limits proto.Quota) error {
	q, err := c.readQuota(ctx, limitPath(path), false)
	isNew := errors.Is(err, proto.ErrNoNode)
	if isNew {
		q = limits
		if _, _, err = c.zk.Create(ctx, limitPath(path), []byte(q.String()), client.CreateOptions{}); err == nil {
			zero := proto.Quota{proto.QuotaCount: 0, proto.QuotaBytes: 0}
			_, _, err = c.zk.Create(ctx, usedPath(path), []byte(zero.String()), client.CreateOptions{})
		}
	}
	if err != nil {
		return err
	}
	for key, v := range limits {
		if v > -1 {
			q[key] = v
		}
	}
	used, err := c.readQuota(ctx, usedPath(path), false)
	if err != nil {
		return err
	}
	c.warnExceeded(q, used)
	if isNew {
		return nil
	}
	_, err = c.zk.Set(ctx, limitPath(path), []byte(q.String()), client.AnyVersion)
	return err
}

// readQuota returns a quota or a budget. If the caller replaces it, a malformed one is empty.
func (c *call) readQuota(ctx context.Context, path string, replaces bool) (proto.Quota, error) {
	data, _, err := c.zk.Get(ctx, path, false)
	if err != nil {
		return nil, err
	}
	q, err := proto.ParseQuota(string(data))
	switch {
	case err != nil && replaces:
		c.note("[Warning]: the malformed budget is replaced")
		return proto.Quota{}, nil
	case err != nil:
		return nil, failure(fmt.Sprintf("not a quota: %.256q", data))
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
	path := quotaTarget(c.args[0])
	c.say(c.err, "absolute path is "+limitPath(path))
	budget, err := c.readQuota(ctx, budgetPath(path), false)
	if err != nil && !errors.Is(err, proto.ErrNoNode) {
		return err
	}
	var used proto.Quota
	limit, err := c.readQuota(ctx, limitPath(path), false)
	if err == nil {
		used, err = c.readQuota(ctx, usedPath(path), false)
	}
	path = c.args[0]
	text := fmt.Sprintf("Output quota for %s %s\nOutput stat for %s %s\n", path, limit, path, used)
	switch {
	case errors.Is(err, proto.ErrNoNode) && budget == nil:
		return noQuota(path)
	case errors.Is(err, proto.ErrNoNode):
		text = ""
	case err != nil:
		return err
	}
	if budget != nil {
		text += fmt.Sprintf("Output budget for %s %s\n", path, budget)
	}
	return c.print(struct {
		Path   string      `json:"path"`
		Limit  proto.Quota `json:"quota"`
		Used   proto.Quota `json:"stat"`
		Budget proto.Quota `json:"budget,omitempty"`
	}{path, limit, used, budget}, text)
}

func noQuota(path string) error { return failure("quota for " + path + " does not exist.") }

func runDelQuota(ctx context.Context, c *call) error {
	path := quotaTarget(c.args[0])
	limits := limitPath(path)
	if c.budgets() {
		limits = budgetPath(path)
	}
	_, ok, err := c.zk.Exists(ctx, limits, false)
	if err == nil && !ok && len(c.given) == 0 { // it may have a budget only
		_, ok, err = c.zk.Exists(ctx, budgetPath(path), false)
	}
	if err == nil && !ok {
		c.note("Quota does not exist for " + c.args[0])
		return errFailed
	}
	if err == nil {
		err = c.deleteQuota(ctx, path, limits)
	}
	if errors.Is(err, proto.ErrNoNode) {
		return noQuota(c.args[0])
	}
	return err
}

// deleteQuota removes the limit that a flag names from the znode at limits. Without a flag
// deleteQuota deletes the quota and the parents that are not needed any more.
func (c *call) deleteQuota(ctx context.Context, path, limits string) error {
	if len(c.given) > 0 {
		q, err := c.readQuota(ctx, limits, c.budgets())
		if err != nil {
			return err
		}
		q[quotaKeys[c.given[0].name]] = -1
		_, err = c.zk.Set(ctx, limits, []byte(q.String()), client.AnyVersion)
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
