package config

import "time"

// Throttle holds the keys of ZooKeeper's throttles, which are off by default.
type Throttle struct {
	// Tokens of a bucket that connect requests take; 0 means no throttle. FillCount are added per
	// FillTime.
	Tokens, FillCount int
	FillTime          time.Duration
	// FreezeTime is how often the share of connect requests that are dropped at random changes;
	// negative means that none are.
	FreezeTime                                time.Duration
	DropIncrease, DropDecrease, DecreaseRatio float64
	// Weighted makes sessions take different numbers of tokens.
	Weighted                               bool
	GlobalWeight, LocalWeight, RenewWeight int

	// Requests bounds the writes in flight; 0 means no throttle. Writes that wait are looked at
	// every StallTime.
	Requests  int
	StallTime time.Duration
	// StaleLatency: a write is stale when it waited for longer than its session's timeout.
	// DropStale drops stale writes.
	StaleLatency, DropStale bool
	// OpWaitTime is after what time a write that waits is refused; 0 means never.
	OpWaitTime time.Duration

	// Requests of more than LargeThreshold bytes are large; 0 or less means that none is. Those in
	// flight may have LargeBytes.
	LargeThreshold, LargeBytes int
}

var throttleKeys = []key{
	{name: "connectionMaxTokens", aliases: []string{"connection_throttle_tokens"}, kind: orNearest32(0, maxInt), def: "0", status: works, reload: true, note: "tokens for connect requests, closed unanswered without one; 0: no throttle",
		field: func(c *Config) any { return &c.Throttle.Tokens }},
	{name: "connectionTokenFillTime", aliases: []string{"connection_throttle_fill_time"}, kind: property32(1, maxInt), def: "1", status: works, reload: true, note: "ms in which connectionTokenFillCount tokens are added",
		field: func(c *Config) any { return &c.Throttle.FillTime }},
	{name: "connectionTokenFillCount", aliases: []string{"connection_throttle_fill_count"}, kind: property32(1, maxInt), def: "1", status: works, reload: true, note: "tokens per connectionTokenFillTime",
		field: func(c *Config) any { return &c.Throttle.FillCount }},
	{name: "connectionFreezeTime", aliases: []string{"connection_throttle_freeze_time"}, kind: orNearest32(-1, maxInt), def: "-1", status: works, reload: true, note: "ms between changes of the share of connect requests dropped at random",
		field: func(c *Config) any { return &c.Throttle.FreezeTime }},
	{name: "connectionDropIncrease", aliases: []string{"connection_throttle_drop_increase"}, kind: fraction, def: "0.02", status: works, reload: true, note: "growth of that share while no token is left",
		field: func(c *Config) any { return &c.Throttle.DropIncrease }},
	{name: "connectionDropDecrease", aliases: []string{"connection_throttle_drop_decrease"}, kind: fraction, def: "0.002", status: works, reload: true, note: "decrease of that share afterwards",
		field: func(c *Config) any { return &c.Throttle.DropDecrease }},
	{name: "connectionDecreaseRatio", aliases: []string{"connection_throttle_decrease_ratio"}, kind: fraction, def: "0", status: works, reload: true, note: "that share decreases while at most this part of the tokens is missing",
		field: func(c *Config) any { return &c.Throttle.DecreaseRatio }},
	{name: "connection_throttle_weight_enabled", kind: boolean, def: "false", status: works, reload: true, note: "connect requests take their session's weight in tokens",
		field: func(c *Config) any { return &c.Throttle.Weighted }},
	{name: "connection_throttle_global_session_weight", kind: property32(1, maxInt), def: "3", status: works, reload: true, note: "tokens for a new session, at least local_session_weight",
		field: func(c *Config) any { return &c.Throttle.GlobalWeight }},
	{name: "connection_throttle_local_session_weight", kind: property32(1, maxInt), def: "1", status: works, reload: true, note: "tokens for a new local session",
		field: func(c *Config) any { return &c.Throttle.LocalWeight }},
	{name: "connection_throttle_renew_session_weight", kind: property32(1, maxInt), def: "2", status: works, reload: true, note: "tokens for a resumed session, at least local_session_weight",
		field: func(c *Config) any { return &c.Throttle.RenewWeight }},

	{name: "requestThrottleLimit", aliases: []string{"request_throttle_max_requests"}, kind: orNearest32(0, maxInt), def: "0", status: works, reload: true, note: "bound on writes in flight, besides globalOutstandingLimit; 0: no throttle",
		field: func(c *Config) any { return &c.Throttle.Requests }},
	{name: "requestThrottleStallTime", aliases: []string{"request_throttle_stall_time"}, kind: property32(1, maxInt), def: "100", status: works, reload: true, note: "ms between looks at a waiting write",
		field: func(c *Config) any { return &c.Throttle.StallTime }},
	{name: "requestStaleLatencyCheck", aliases: []string{"request_stale_latency_check"}, kind: boolean, def: "false", status: works, reload: true, note: "a write that waits longer than its session's timeout is stale",
		field: func(c *Config) any { return &c.Throttle.StaleLatency }},
	{name: "requestThrottleDropStale", aliases: []string{"request_throttle_drop_stale"}, kind: boolean, def: "true", status: works, reload: true, note: "a stale write is dropped and its connection closed",
		field: func(c *Config) any { return &c.Throttle.DropStale }},
	{name: "throttledOpWaitTime", aliases: []string{"throttled_op_wait_time"}, kind: orNearest32(0, maxInt), def: "0", status: works, reload: true, note: "ms after which a waiting write gets the error -127; 0: never",
		field: func(c *Config) any { return &c.Throttle.OpWaitTime }},
	{name: "requestStaleConnectionCheck", aliases: []string{"request_stale_connection_check"}, kind: boolean, status: harmless, note: "always on"},
	{name: "request_throttler.shutdownTimeout", kind: anything, status: harmless, note: "an implementation detail of the Java server"},

	{name: "largeRequestThreshold", kind: orNearest32(-1, maxInt), def: "-1", status: works, note: "bytes above which a request is large; -1, 0: none is",
		field: func(c *Config) any { return &c.Throttle.LargeThreshold }},
	{name: "largeRequestMaxBytes", kind: property32(-maxInt-1, maxInt), def: "104857600", status: works, note: "bytes of large writes in flight; a large request above them closes its connection; 0 or less: the default",
		field: func(c *Config) any { return &c.Throttle.LargeBytes }},
}
