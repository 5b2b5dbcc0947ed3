package shell

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/proto"
)

func runConfig(ctx context.Context, c *call) error {
	data, st, err := c.zk.Config(ctx, c.has("w"))
	if err != nil {
		return err
	}
	config := string(data)
	if data == nil {
		config = javaNull
	}
	if c.has("c") {
		config = clientAddresses(config)
	}
	return c.printConfig(config, "", st)
}

// printConfig shows the configuration of the ensemble; text output begins with heading.
func (c *call) printConfig(config, heading string, st proto.Stat) error {
	r := struct {
		Config string `json:"config"`
		Stat   *stat  `json:"stat,omitempty"`
	}{config, c.wantedStat(st)}
	return c.print(r, heading+config+"\n"+r.Stat.String())
}

// clientAddresses returns the version and the client addresses of the members, in the order of the
// lines: "100000000 a:2181,b:2181". A member without a client address adds an empty address.
func clientAddresses(config string) string {
	var addresses []string
	version := ""
	for key, value := range serverlist.Lines(config) {
		if key == "version" {
			version = value
		} else if m, err := serverlist.Parse(key, value); err == nil {
			addresses = append(addresses, m.ClientAddress())
		}
	}
	return version + " " + strings.Join(addresses, ",")
}

func runReconfig(ctx context.Context, c *call) error {
	whole, single := c.has("file") || c.has("members"), c.has("add") || c.has("remove")
	version := int64(-1)
	var err error
	if c.has("v") {
		if version, err = strconv.ParseInt(c.value("v"), 16, 64); err != nil {
			err = usageError("-v must be followed by a long (configuration version)")
		}
	}
	switch {
	case !whole && !single:
		return errUsage
	case err != nil:
		return err
	case whole && single:
		return usageError("Can't use -file or -members together with -add or -remove (mixing incremental and non-incremental modes is not allowed)")
	case c.has("file") && c.has("members"):
		return usageError("Can't use -file and -members together (conflicting non-incremental modes)")
	}
	list := strings.ToLower(c.value("members"))
	if c.has("file") {
		if list, err = readMembers(c.value("file")); err != nil {
			return usageError("Error processing " + c.value("file") + ": " + err.Error())
		}
	}
	add, remove := strings.ToLower(c.value("add")), strings.ToLower(c.value("remove"))
	before, _, _ := c.zk.Config(ctx, false) // only for remarks
	old, _, _ := serverlist.ParseConfig(string(before))
	data, st, err := c.zk.Reconfig(ctx, add, remove, list, version)
	if err != nil {
		r := serverlist.Request{Joining: &add, Leaving: &remove, MultiAddress: true}
		if whole {
			r.NewMembers = &list
		}
		_, why := serverlist.Reconfigure(old, r)
		if code, _ := serverlist.Answer(why); code != proto.OK && errors.Is(err, code) {
			c.say(c.err, why.Error())
		}
		return err
	}
	c.remarkMembers(ctx, old, data)
	return c.printConfig(string(data), "Committed new configuration:\n", st)
}

// remarkMembers tells, on standard error, what a reconfig does not refuse: to remove a server that
// is no member, and to add a server that does not run.
func (c *call) remarkMembers(ctx context.Context, old serverlist.Set, after []byte) {
	if len(old) == 0 {
		return // not known
	}
	for word := range strings.SplitSeq(c.value("remove"), ",") {
		id, err := strconv.ParseUint(strings.TrimSpace(word), 10, 64)
		if _, member := old.Get(id); err == nil && !member {
			c.say(c.err, fmt.Sprintf("server.%d was not a member of the ensemble: there was nothing to remove", id))
		}
	}
	set, _, _ := serverlist.ParseConfig(string(after))
	for _, m := range set {
		if _, member := old.Get(m.ID); member || m.ClientPort == 0 {
			continue
		}
		address := m.Dialed(0)
		conn, err := (&net.Dialer{Timeout: 2 * time.Second}).DialContext(ctx, "tcp", address)
		if err == nil {
			err = conn.Close()
		}
		if err != nil {
			c.say(c.err, fmt.Sprintf("%s is a member now, but does not answer clients: %v; start or remove it", m.Key(), err))
		}
	}
}

// readMembers returns the server lines of a file, which may have a version, with commas between.
func readMembers(name string) (string, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	var list []string
	for key, value := range serverlist.Lines(string(data)) {
		switch {
		case key == "version":
		case strings.HasPrefix(key, "server."):
			m, err := serverlist.Parse(key, value)
			if err != nil {
				return "", err
			}
			list = append(list, m.String())
		default:
			return "", fmt.Errorf("Unrecognised parameter: %s", key) //nolint:staticcheck // ZooKeeper's words
		}
	}
	return strings.Join(list, ","), nil
}
