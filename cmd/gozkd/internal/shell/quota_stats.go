package shell

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The keys of a quota, and of what is used of one: the first two only.
const (
	quotaCount     = "count"
	quotaBytes     = "bytes"
	quotaCountHard = "countHardLimit"
	quotaBytesHard = "byteHardLimit"
)

// quotaStats is the data of a quota's znodes. A limit that is missing or -1 is none.
type quotaStats map[string]int64

// newQuota returns a quota without a limit.
func newQuota() quotaStats {
	return quotaStats{quotaCount: -1, quotaBytes: -1, quotaCountHard: -1, quotaBytesHard: -1}
}

// parseQuota reads "count=5,bytes=-1=;byteHardLimit=-1;countHardLimit=-1".
// Source: ZooKeeper StatsTrack.
func parseQuota(data []byte) (quotaStats, error) {
	q := quotaStats{}
	for pair := range strings.FieldsFuncSeq(string(data), func(r rune) bool { return r == ',' || r == ';' }) {
		key, value, _ := strings.Cut(pair, "=")
		value, _, _ = strings.Cut(value, "=")
		if value == "" {
			value = "-1"
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return nil, failure(fmt.Sprintf("no quota: %q", data))
		}
		q[key] = n
	}
	return q, nil
}

// get returns a value, -1 if it is missing.
func (q quotaStats) get(key string) int64 {
	if v, ok := q[key]; ok {
		return v
	}
	return -1
}

// String returns the data of the znode. The "=" behind the bytes hides what follows from readers that know only two keys.
func (q quotaStats) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s=%d,%s=%d", quotaCount, q.get(quotaCount), quotaBytes, q.get(quotaBytes))
	more := slices.DeleteFunc(slices.Sorted(maps.Keys(q)), func(k string) bool { return k == quotaCount || k == quotaBytes })
	if len(more) > 0 {
		b.WriteString("=")
	}
	for _, k := range more {
		fmt.Fprintf(&b, ";%s=%d", k, q[k])
	}
	return b.String()
}
