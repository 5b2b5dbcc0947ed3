package top

import (
	"context"
	"net"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/probe"
)

// discoverer returns a function that learns the identity of a member and the other members as a
// client: anybody may read /zookeeper/config, and the first byte of a session id is the number of
// the member that created it. Source: ZooKeeper SessionTrackerImpl.initializeNextSessionId.
func discoverer(timeout time.Duration) func(ctx context.Context, address string) (probe.Settings, error) {
	return func(ctx context.Context, address string) (_ probe.Settings, err error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		c, err := client.Connect(ctx, client.Config{Servers: []string{address}, ConnectTimeout: timeout})
		if err != nil {
			return probe.Settings{}, err
		}
		defer func() { _ = c.Close() }() // the data has been read
		data, _, err := c.Config(ctx, false)
		if err != nil {
			return probe.Settings{}, err
		}
		s := probe.ParseSettings(string(data))
		s.ServerID = uint64(c.Session().ID) >> 56
		return s, nil
	}
}

// aliases maps the IP addresses with ports of the given addresses to these. It skips a name that
// cannot be resolved: asking that server reports the error.
func aliases(ctx context.Context, addresses []string, timeout time.Duration) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	m := make(map[string]string)
	for _, address := range addresses {
		m[address] = address
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			continue
		}
		ips, err := net.DefaultResolver.LookupHost(ctx, host)
		if err != nil {
			continue
		}
		for _, ip := range ips {
			m[net.JoinHostPort(ip, port)] = address
		}
	}
	return m
}
