package server

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/gozkd/gozkd/consensus"
)

// reloads names the fields of Config that Reload changes. Each is read from Server.live at its
// place of use, so a reader sees either the old or the new value, or Reload hands it to the part
// that owns its rules.
var reloads = []string{
	"MinSessionTimeout", "MaxSessionTimeout", "MaxClientConns", "MaxConns", "ConnectionThrottle", "RequestThrottle",
	"BudgetWait", "IgnoreBudgets", "OutstandingLimit", "ClientMemory", "WatchMemory", "HandshakeTimeout",
	"TLS", "PortUnification", "HandshakeLimit", "Auth",
	"Words", "SyncWarning", "SlowRequest", "SuperDigest", "DisableDigest", "EnforceQuota", "RefuseTTL", "ReconfigEnabled", "ReadOnlyMode",
	"ContainerMaxPerMinute", "ContainerNeverUsed", "MaxFeatureLevel", "Settings", "PeerTLS",
}

// handedIn names the fields that a configuration file cannot contain: objects that the embedding
// program hands in.
var handedIn = []string{"Memory", "PeerListener", "PeerDial", "Listener", "SecureListener", "Audit", "ArchiveStats", "Certificates", "InProcess", "Version", "Logger", "Slog", "Now", "Rand", "fs", "dirFS", "used", "free", "levels"}

// Reload applies those fields of cfg that can change while the server serves, and returns the
// sorted names of the other fields that differ from the present configuration: these need a
// restart. cfg is a whole configuration, as for New, and a zero field has its default. If cfg is
// invalid, nothing changes.
//
// These fields change, for what begins afterwards: MinSessionTimeout, MaxSessionTimeout (a session
// keeps its timeout until its client reconnects), MaxClientConns, MaxConns (no connection is
// closed), ConnectionThrottle, RequestThrottle, BudgetWait, IgnoreBudgets, OutstandingLimit,
// ClientMemory, WatchMemory, HandshakeTimeout, TLS, PortUnification, HandshakeLimit, Auth
// (connections keep what they negotiated), Words, SyncWarning, SlowRequest, SuperDigest,
// DisableDigest (a connection keeps its identities), EnforceQuota, RefuseTTL, ReconfigEnabled,
// ReadOnlyMode, ContainerMaxPerMinute, ContainerNeverUsed, MaxFeatureLevel, Settings, PeerTLS
// (which connections between members are made again: peer.Network.SetTLS). Reload ignores the
// objects that the program hands in, such as listeners, loggers and Now, and InProcess and Version.
//
// Reload may be called at any time, from any goroutine.
func (s *Server) Reload(cfg Config) (restart []string, err error) {
	err = cfg.ensureDefaults()
	if _, membersErr := cfg.parseMembers(); err == nil {
		err = membersErr
	}
	if err != nil {
		return nil, fmt.Errorf("server: reload: %w", err)
	}
	s.reloading.Lock()
	defer s.reloading.Unlock()
	next := *s.live.Load()
	to, from := reflect.ValueOf(&next).Elem(), reflect.ValueOf(cfg)
	for i := range to.NumField() {
		name := to.Type().Field(i).Name
		switch {
		case slices.Contains(reloads, name):
			to.Field(i).Set(from.Field(i))
		case slices.Contains(handedIn, name):
		case !same(to.Field(i), from.Field(i)):
			restart = append(restart, name)
		}
	}
	next.Words, next.Settings = slices.Clone(next.Words), slices.Clone(next.Settings)
	s.live.Store(&next)
	s.identities.Set(next.identities())
	s.writes.SetMax(next.maxWrites())
	s.conns.links.Memory.Limit.Store(next.ClientMemory)
	if s.life.Accepting.Load() {
		s.node.SetMaxLevel(consensus.Level(next.MaxFeatureLevel))
		if err := s.node.SetPeerTLS(next.PeerTLS.forPeers()); err != nil { // was checked above
			return nil, fmt.Errorf("server: reload: %w", err)
		}
	}
	s.meter.Slow.SetThreshold(next.SlowRequest)
	slices.Sort(restart)
	return restart, nil
}

// same reports whether two fields are equal. An empty list equals nil.
func same(a, b reflect.Value) bool {
	if a.Kind() == reflect.Slice && a.Len() == 0 && b.Len() == 0 {
		return true
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}
