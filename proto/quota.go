package proto

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The quota of /a/b is in two znodes below QuotaRoot + "/a/b", its limits and the present use, and
// its budget in a third. A budget may also be that of an identity: then QuotaIdentities and
// url.PathEscape(scheme:id) stand for /a/b.
const (
	QuotaRoot       = "/zookeeper/quota"
	QuotaLimits     = "/zookeeper_limits"
	QuotaStats      = "/zookeeper_stats"
	QuotaBudget     = "/zookeeper_budget"
	QuotaIdentities = "/zookeeper/identities/"
)

// The keys of a Quota. The znode with the present use has the first two only.
const (
	QuotaCount     = "count"
	QuotaBytes     = "bytes"
	QuotaCountHard = "countHardLimit"
	QuotaBytesHard = "byteHardLimit"

	// Of the znode with a budget: how much may be used per second.
	QuotaOps      = "opsPerSecond"
	QuotaByteRate = "bytesPerSecond"
)

// A Quota is the text of a znode with limits or the present use, such as
// "count=5,bytes=-1=;byteHardLimit=-1;countHardLimit=7". Unknown keys are kept.
// Source: ZooKeeper's StatsTrack.
type Quota map[string]int64

// ParseQuota reads the text of a znode, and takes as malformed what StatsTrack does. No text is a
// Quota without limits.
func ParseQuota(text string) (Quota, error) {
	q := Quota{}
	separator := func(r rune) bool { return r == ',' || r == ';' }
	text = strings.TrimRightFunc(text, separator)
	for len(text) > 0 {
		pair, rest := text, ""
		if i := strings.IndexFunc(text, separator); i >= 0 {
			pair, rest = text[:i], strings.TrimLeftFunc(text[i:], separator)
		}
		// What follows a second "=" is ignored.
		key, value, ok := strings.Cut(strings.TrimRight(pair, "="), "=")
		if value, _, _ = strings.Cut(value, "="); ok && value == "" {
			value = "-1"
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("malformed quota: %q", pair)
		}
		q[key], text = n, rest
	}
	return q, nil
}

// Get returns a value, or -1, which is no limit, for a missing key.
func (q Quota) Get(key string) int64 {
	if v, ok := q[key]; ok {
		return v
	}
	return -1
}

// String returns the text of the znode. The "=" after the bytes hides the rest from readers that
// know only two keys.
func (q Quota) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s=%d,%s=%d", QuotaCount, q.Get(QuotaCount), QuotaBytes, q.Get(QuotaBytes))
	more := "=;"
	for _, k := range slices.Sorted(maps.Keys(q)) {
		if k != QuotaCount && k != QuotaBytes {
			fmt.Fprintf(&b, "%s%s=%d", more, k, q[k])
			more = ";"
		}
	}
	return b.String()
}
