package server

import (
	"fmt"
	"reflect"
	"slices"
)

// reloads are the fields of Config that Reload takes: each is read anew where it is used, so that who reads it sees the old value or the
// new one, and the rest of the server does not depend on it.
var reloads = []string{
	"MinSessionTimeout", "MaxSessionTimeout", "MaxClientConns", "MaxConns", "OutstandingLimit", "HandshakeTimeout",
	"Words", "SyncWarning", "SlowRequest", "SuperDigest", "DisableDigest", "EnforceQuota", "ReconfigEnabled",
	"ContainerMaxPerMinute", "ContainerNeverUsed", "Settings",
}

// handedIn are the fields that no configuration names: what the embedding program gave the server to live on.
var handedIn = []string{"Memory", "PeerListener", "PeerDial", "Listener", "InProcess", "Version", "Logger", "Now", "Rand", "FS"}

// Reload takes from cfg what can change while the server serves, and returns the names of the fields of Config that differ from what it
// runs with and need a restart, sorted. cfg is a whole configuration, as for New; what is zero has its default. If anything in it is
// wrong, nothing changes.
//
// These change, for what begins afterwards: MinSessionTimeout, MaxSessionTimeout (sessions keep what they have until their clients come
// again), MaxClientConns, MaxConns (nobody is cut off), OutstandingLimit, HandshakeTimeout, Words, SyncWarning, SlowRequest, SuperDigest,
// DisableDigest (who has passed keeps the id until the connection ends), EnforceQuota, ReconfigEnabled, ContainerMaxPerMinute,
// ContainerNeverUsed, Settings. What a server was handed to live on (Memory, the listeners, PeerDial, InProcess, Version, Logger, Now,
// Rand, FS) is not looked at.
//
// It may be called at any time, from any goroutine.
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
	s.writes.setMax(next.OutstandingLimit)
	s.meter.Slow.SetThreshold(next.SlowRequest)
	slices.Sort(restart)
	return restart, nil
}

// same takes a list without elements for one that is not there.
func same(a, b reflect.Value) bool {
	if a.Kind() == reflect.Slice && a.Len() == 0 && b.Len() == 0 {
		return true
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}
