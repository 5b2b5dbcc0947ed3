package archtest

// webTable is the part of table about REST and the explorer. Only web and web/internal/explore see the
// server.
var webTable = []box{
	{pkg: "web/static", there: true},
	{pkg: "web/internal/limit", there: true},
	{pkg: "web/internal/unpack", there: true, may: []arrow{{"github.com/klauspost/compress", "zstd, which browsers do not know"}}},
	{pkg: "web/internal/locks", there: true, may: []arrow{{"internal/sequence", "numbers of sequential znodes"}}},
	{pkg: "web/internal/answer", there: true},
	{pkg: "web/internal/access", there: true, may: []arrow{
		{"internal/httplocal", "who is on this machine"},
		{"audit", "logins"},
		{"proto", "identities"},
		{"web/internal/answer", "refusals"},
		{"web/internal/limit", "failed logins"},
	}},
	{pkg: "web/internal/call", there: true, may: []arrow{
		{"audit", "what callers do other than by a session"},
		{"client", "the session of a caller"},
		{"proto", "events and error codes"},
		{"web/internal/access", "the caller"},
		{"web/internal/answer", "refusals"},
		{"github.com/hashicorp/go-hclog", "logging"},
	}},
	{pkg: "web/internal/restv1", there: true, may: []arrow{
		{"client", "requests"},
		{"proto", "Stats, error codes"},
		{"web/internal/access", "roles"},
		{"web/internal/answer", "writes answers"},
		{"web/internal/call", "the caller"},
		{"web/internal/limit", "bounds sessions"},
	}},
	{pkg: "web/internal/restv2", there: true, may: []arrow{
		{"client", "requests"},
		{"proto", "ACLs, Stats, paths, error codes"},
		{"web/internal/access", "roles"},
		{"web/internal/answer", "writes answers"},
		{"web/internal/call", "the caller"},
		{"web/internal/limit", "bounds streams"},
	}},
	{pkg: "web/internal/explore", there: true, may: []arrow{
		{"server", "facts"},
	}},
	{pkg: "web", there: true, may: []arrow{
		{"client", "sessions of /sessions/v1"},
		{"proto", "the kinds of znodes"},
		{"server", "the server of the znodes"},
		{"web/internal/access", "identifies callers"},
		{"web/internal/answer", "refusals"},
		{"web/internal/call", "hands callers to handlers"},
		{"web/internal/explore", "/ui/api/"},
		{"web/internal/limit", "bounds requests"},
		{"web/internal/restv1", "/znodes/v1, /sessions/v1"},
		{"web/internal/restv2", "/znodes/v2"},
		{"web/static", "/ui/"},
		{"github.com/hashicorp/go-hclog", "logging"},
	}},
}
