package restv2

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/web/internal/answer"
)

// The ETags of a znode begin with its creation and the version that a write demands, so that they
// differ for a znode that was deleted and created again. JSON shows the Stat, too, so its tag
// changes with the children and the ACL.

func dataTag(s *proto.Stat) string { return fmt.Sprintf(`"%x-%d"`, int64(s.Czxid), s.Version) }

// jsonTag is the ETag of the data and the Stat as JSON.
func jsonTag(s *proto.Stat) string {
	return fmt.Sprintf(`"%x-%d-%x-%d"`, int64(s.Czxid), s.Version, int64(s.Pzxid), s.Aversion)
}

// aclTag is the ETag of the ACL and the Stat as JSON.
func aclTag(s *proto.Stat) string {
	return fmt.Sprintf(`"acl-%x-%d-%x-%d"`, int64(s.Czxid), s.Aversion, int64(s.Pzxid), s.Version)
}

// unchanged sets an ETag. If the caller has that representation, it answers 304 and returns true.
func unchanged(w http.ResponseWriter, r *http.Request, tag string) bool {
	w.Header().Set("ETag", tag)
	for given := range strings.SplitSeq(strings.Join(r.Header.Values("If-None-Match"), ","), ",") {
		if given = strings.TrimPrefix(strings.TrimSpace(given), "W/"); given == tag || given == "*" {
			w.WriteHeader(http.StatusNotModified)
			return true
		}
	}
	return false
}

// condition is what a write demands of the present znode.
type condition struct {
	version int32
	czxid   proto.Zxid // 0: any
}

// ifMatch returns the condition of a write of the data, or of the ACL. A version alone will do.
func ifMatch(r *http.Request, acl bool) (condition, error) {
	given := r.Header.Values("If-Match")
	if len(given) == 0 {
		return condition{}, answer.Errorf(http.StatusPreconditionRequired,
			"the header If-Match must have the ETag that you saw, its version as \"3\", or * for any")
	}
	if len(given) == 1 && given[0] == "*" {
		return condition{version: client.AnyVersion}, nil
	}
	text, ofACL := strings.CutPrefix(strings.Trim(given[0], `"`), "acl-")
	if len(given) == 1 && given[0] == `"`+strings.ReplaceAll(given[0], `"`, "")+`"` && (acl || !ofACL) {
		czxid, version := "0", text
		if parts := strings.Split(text, "-"); len(parts) > 1 && ofACL == acl {
			czxid, version = parts[0], parts[1]
		}
		created, err := strconv.ParseInt(czxid, 16, 64)
		if n, bad := strconv.ParseUint(version, 10, 31); err == nil && bad == nil {
			return condition{int32(n), proto.Zxid(created)}, nil
		}
	}
	return condition{}, answer.Bad(`If-Match is %q, allowed are *, one ETag, and one version such as "3"`,
		strings.Join(given, ", "))
}

// demand fails if the znode is not the one that the caller saw. Between this and the write it can
// only be replaced by one that has the same version: no request compares creations.
func (h *Handler) demand(r *http.Request, cl *client.Client, path string, c condition) error {
	if c.czxid == 0 {
		return nil
	}
	if stat, ok, err := cl.Exists(r.Context(), path, false); err != nil || !ok || stat.Czxid == c.czxid {
		return err
	}
	return h.conflict(r, cl, path, proto.ErrBadVersion)
}
