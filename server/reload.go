package server

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/gozkd/gozkd/consensus"
)

// Reload applies those fields of cfg that can change while the server serves, and returns the
// sorted names of the other fields that differ from the present configuration: these need a
// restart. cfg is a whole configuration, as for New, and a zero field has its default. If cfg is
// invalid, nothing changes.
//
// The fields with the tag reload:"live" change, for later sessions and connections. A session keeps
// its timeout until its client reconnects. A connection keeps its TLS parameters and identities,
// and none is closed for MaxClientConns and MaxConns. PeerTLS says which connections between
// members are made again (peer.Network.SetTLS). Reload ignores fields with the tag
// reload:"handed in", which a configuration file cannot contain: objects of the embedding program,
// such as listeners, loggers and Now, and InProcess and Version.
//
// Reload may be called at any time, from any goroutine.
func (s *Server) Reload(cfg Config) (restart []string, err error) {
	if _, err := cfg.complete(); err != nil {
		return nil, fmt.Errorf("server: reload: %w", err)
	}
	s.reloading.Lock()
	defer s.reloading.Unlock()
	next := *s.live.Load()
	to, from := reflect.ValueOf(&next).Elem(), reflect.ValueOf(cfg)
	for i := range to.NumField() {
		switch field := to.Type().Field(i); {
		case field.Tag.Get("reload") == "live":
			to.Field(i).Set(from.Field(i))
		case field.Tag != "" || !field.IsExported(): // handed in
		case !same(to.Field(i), from.Field(i)):
			restart = append(restart, field.Name)
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
