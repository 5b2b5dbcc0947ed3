//go:build linux

package jepsenlite

import "testing"

func TestModeOf(t *testing.T) {
	for answer, want := range map[string]string{
		"Zookeeper version: 3.9.5\nLatency min/avg/max: 0/0.0/0\nMode: follower\nNode count: 5\n": ModeFollower,
		"Mode: leader\n": ModeLeader,
		"This ZooKeeper instance is not currently serving requests\n": ModeNone,
		"": ModeNone,
	} {
		if got := modeOf(answer); got != want {
			t.Errorf("%q: %s, want %s", answer, got, want)
		}
	}
}
