package shell

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/internal/serverlist"
)

func runConfig(ctx context.Context, c *call) error {
	data, st, err := c.zk.Config(ctx, c.has("w"))
	if err != nil {
		return err
	}
	r := configResult{Config: string(data)}
	if data == nil {
		r.Config = "null"
	}
	if c.has("c") {
		r.Config = clientAddresses(r.Config)
	}
	if c.has("s") {
		r.Stat = c.stat(st)
	}
	return c.show(r)
}

type configResult struct {
	Config string `json:"config"`
	Stat   *stat  `json:"stat,omitempty"`
}

func (r configResult) text(out, err io.Writer) {
	_, _ = io.WriteString(out, r.Config+"\n")
	r.Stat.text(out, err)
}

// clientAddresses returns the version and where clients reach the members, "100000000 a:2181,b:2181", in the order of the
// lines. A member that names no such place is an empty one.
func clientAddresses(config string) string {
	var addresses []string
	version := ""
	for line := range strings.Lines(config) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if key == "version" {
			version = value
		}
		if !ok || !strings.HasPrefix(key, "server.") {
			continue
		}
		m, err := serverlist.Parse(key, value)
		if err != nil {
			continue
		}
		address := ""
		if m.ClientPort != 0 {
			address = m.ClientAddress()
		}
		addresses = append(addresses, address)
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
			return usageError("Error processing " + c.value("file") + err.Error())
		}
	}
	data, st, err := c.zk.Reconfig(ctx, strings.ToLower(c.value("add")), strings.ToLower(c.value("remove")), list, version)
	if err != nil {
		return err
	}
	r := reconfigResult{Config: string(data)}
	if c.has("s") {
		r.Stat = c.stat(st)
	}
	return c.show(r)
}

type reconfigResult struct {
	Config string `json:"config"`
	Stat   *stat  `json:"stat,omitempty"`
}

func (r reconfigResult) text(out, err io.Writer) {
	_, _ = io.WriteString(out, "Committed new configuration:\n"+r.Config+"\n")
	r.Stat.text(out, err)
}

// readMembers reads the server lines of a file, which may hold a version besides, and returns them with commas between.
func readMembers(name string) (string, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf(": %w", err)
	}
	var list []string
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		switch {
		case key == "version":
		case strings.HasPrefix(key, "server."):
			m, err := serverlist.Parse(key, value)
			if err != nil {
				return "", fmt.Errorf(": %w", err)
			}
			list = append(list, m.String())
		default:
			return "", fmt.Errorf(": Unrecognised parameter: %s", key)
		}
	}
	return strings.Join(list, ","), nil
}
