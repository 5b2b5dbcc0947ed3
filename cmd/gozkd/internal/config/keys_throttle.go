package config

// throttleKeys are ZooKeeper's throttles, which are off by default.
func throttleKeys(c *Config) []key {
	return []key{
		live("connectionMaxTokens", orNearest32(0, maxInt), "0", &c.Server.ConnectionThrottle.Tokens,
			"tokens for connect requests, closed unanswered without one; 0: no throttle").alias("connection_throttle_tokens"),
		live("connectionTokenFillTime", property32(1, maxInt), "1", &c.Server.ConnectionThrottle.FillTime,
			"ms in which connectionTokenFillCount tokens are added").alias("connection_throttle_fill_time"),
		live("connectionTokenFillCount", property32(1, maxInt), "1", &c.Server.ConnectionThrottle.FillCount,
			"tokens per connectionTokenFillTime").alias("connection_throttle_fill_count"),
		live("connectionFreezeTime", orNearest32(-1, maxInt), "-1", minusOneIsNone(&c.Server.ConnectionThrottle.FreezeTime),
			"ms between changes of the share of connect requests dropped at random").alias("connection_throttle_freeze_time"),
		live("connectionDropIncrease", fraction, "0.02", &c.Server.ConnectionThrottle.DropIncrease,
			"growth of that share while no token is left").alias("connection_throttle_drop_increase"),
		live("connectionDropDecrease", fraction, "0.002", &c.Server.ConnectionThrottle.DropDecrease,
			"decrease of that share afterwards").alias("connection_throttle_drop_decrease"),
		live("connectionDecreaseRatio", fraction, "0", &c.Server.ConnectionThrottle.DecreaseRatio,
			"that share decreases while at most this part of the tokens is missing").alias("connection_throttle_decrease_ratio"),
		live("connection_throttle_weight_enabled", boolean, "false", &c.Server.ConnectionThrottle.Weighted,
			"connect requests take their session's weight in tokens"),
		live("connection_throttle_global_session_weight", property32(1, maxInt), "3", &c.Server.ConnectionThrottle.GlobalWeight,
			"tokens for a new session, at least local_session_weight"),
		live("connection_throttle_local_session_weight", property32(1, maxInt), "1", &c.Server.ConnectionThrottle.LocalWeight,
			"tokens for a new local session"),
		live("connection_throttle_renew_session_weight", property32(1, maxInt), "2", &c.Server.ConnectionThrottle.RenewWeight,
			"tokens for a resumed session, at least local_session_weight"),

		live("requestThrottleLimit", orNearest32(0, maxInt), "0", &c.Server.RequestThrottle.Limit,
			"bound on writes in flight, besides globalOutstandingLimit; 0: no throttle").alias("request_throttle_max_requests"),
		live("requestThrottleStallTime", property32(1, maxInt), "100", &c.Server.RequestThrottle.StallTime,
			"ms between looks at a waiting write").alias("request_throttle_stall_time"),
		live("requestStaleLatencyCheck", boolean, "false", &c.Server.RequestThrottle.StaleLatency,
			"a write that waits longer than its session's timeout is stale").alias("request_stale_latency_check"),
		live("requestThrottleDropStale", boolean, "true", not{&c.Server.RequestThrottle.KeepStale},
			"a stale write is dropped and its connection closed").alias("request_throttle_drop_stale"),
		live("throttledOpWaitTime", orNearest32(0, maxInt), "0", &c.Server.RequestThrottle.OpWaitTime,
			"ms after which a waiting write gets the error -127; 0: never").alias("throttled_op_wait_time"),
		none("requestStaleConnectionCheck", boolean, "", "always on").alias("request_stale_connection_check"),
		none("request_throttler.shutdownTimeout", anything, "", "an implementation detail of the Java server"),

		row("largeRequestThreshold", orNearest32(-1, maxInt), "-1", &c.Server.LargeRequestThreshold,
			"bytes above which a request is large; -1, 0: none is"),
		row("largeRequestMaxBytes", orNearest32(1, maxInt).instead("104857600"), "104857600", &c.Server.LargeRequestMaxBytes,
			"bytes of large writes in flight; a large request above them closes its connection; 0 or less: the default"),
	}
}
