package main

import (
	"strconv"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/server"
)

// serverConfig translates the configuration in ZooKeeper's terms to the server's.
func serverConfig(c config.Config, log hclog.Logger) server.Config {
	var lines []string
	for _, m := range c.Members {
		lines = append(lines, m.String())
	}
	return server.Config{
		MemberID: uint8(c.MyID), Members: lines, PeerListen: c.PeerListenAddress(), InitLimit: c.InitLimit, SyncLimit: c.SyncLimit,
		LinearizableReads: c.LinearizableReads, JoinOnly: !mayFound(c),
		Dir: c.DataDir, LogDir: c.DataLogDir, Listen: c.ListenAddress(),
		Tick: c.TickTime, MinSessionTimeout: c.MinSessionTimeout, MaxSessionTimeout: c.MaxSessionTimeout,
		MaxClientConns: orNone(c.MaxClientCnxns), MaxConns: orNone(c.MaxCnxns),
		MaxBuffer: int32(c.JuteMaxBuffer), OutstandingLimit: c.GlobalOutstandingLimit,
		SnapCount: c.SnapCount, SegmentBytes: c.PreAllocBytes, NoSync: !c.ForceSync, SyncWarning: max(c.FsyncWarningThreshold, time.Millisecond),
		SkipACL: c.SkipACL, SuperDigest: c.SuperDigest, DisableDigest: !c.DigestAuthEnabled, EnforceQuota: c.EnforceQuota,
		ReconfigEnabled: c.ReconfigEnabled, Words: c.Words(),
		ContainerInterval: c.ContainerCheckInterval, ContainerMaxPerMinute: c.ContainerMaxPerMinute,
		ContainerNeverUsed: orNone(c.ContainerMaxNeverUsed),
		ClientKeepAlive:    c.ClientTCPKeepAlive, HandshakeTimeout: c.HandshakeTimeout,
		SlowRequest: c.SlowRequest, MaxFeatureLevel: c.MaxFeatureLevel,
		Settings: []server.Setting{{Key: "clientPortListenBacklog", Value: strconv.Itoa(c.ClientPortListenBacklog)}},
		Logger:   log,
	}
}

// orNone translates ZooKeeper's "0 means no limit" to the server's "negative means no limit".
func orNone[T int | time.Duration](v T) T {
	if v == 0 {
		return -1
	}
	return v
}
