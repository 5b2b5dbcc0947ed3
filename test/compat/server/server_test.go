package server

import "testing"

func TestVersionOf(t *testing.T) {
	for answer, want := range map[string]string{
		"Zookeeper version: 3.9.5-74e3c6e, built on 2026-01-01 10:00 UTC\nLatency": "3.9.5",
		"Zookeeper version: 3.8.0-${buildNumber}, built on \n":                     "3.8.0",
		"Zookeeper version: 3.9.5-gozkd-0.1.0, built on x\n":                       "0.1.0",
		"Zookeeper version: 3.9.5-gozkd-devel-f70422a5f4b5-go1.26.8, built on x\n": "devel",
	} {
		if got := versionOf(valuesIn(answer, ": ")); got != want {
			t.Errorf("versionOf(%q) = %q, want %q", answer, got, want)
		}
	}
}

func TestValuesIn_Mode(t *testing.T) {
	for answer, want := range map[string]string{
		"Zookeeper version: 3.9.5-x, built on y\nZxid: 0x0\nMode: follower\nNode count: 5\n":      "follower",
		"Zookeeper version: 3.9.5\nLatency min/avg/max: 0/0.0/0\nMode: follower\nNode count: 5\n": "follower",
		"Mode: leader\n": "leader",
		"This ZooKeeper instance is not currently serving requests\n": "",
		"": "",
	} {
		if got := valuesIn(answer, ": ")["Mode"]; got != want {
			t.Errorf("the mode in %q is %q, want %q", answer, got, want)
		}
	}
}
