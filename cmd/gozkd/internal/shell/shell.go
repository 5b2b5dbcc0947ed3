package shell

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/proto"
)

// Shell executes commands, one after the other, in a session with an ensemble. It is not safe for concurrent use; the
// events of the session come from a goroutine of their own and are printed between the results.
type Shell struct {
	out, err io.Writer // each Write is of a piece: nothing comes between
	env      cli.Env   // what surrounds the program; to be printed is only what goes through out and err
	location *time.Location
	commands []*command
	settings settings
	// show hands a result to whoever wants it: as text or as JSON.
	show func(result) error
	// fail tells of the error of a command, or with the name "" of the shell itself.
	fail  func(name string, err error)
	shown bool // the command that runs has shown a result
	// onEvent is called for each event of the session, from the client's goroutine, if printWatches holds.
	onEvent func(client.Event)

	zk           *client.Client // nil before the first connect
	auths        []client.Auth  // what addauth gave zk
	host         string         // the connect string of zk
	printWatches *toggle
	stream       atomic.Pointer[stream] // what a running watch prints; nil: none runs
	// once holds in a process that executes one command: nothing goes to out but what the command was asked for.
	once    bool
	count   int            // lines executed
	history map[int]string // by number; redo puts the line that it repeats
}

// settings are what the command line says of the session.
type settings struct {
	server   string
	timeout  time.Duration
	readOnly bool
	json     bool
	help     bool
}

// newShell returns a shell without a session. It writes to out and err only whole results and messages.
func newShell(out, err io.Writer, set settings) *Shell {
	locked := new(lock)
	s := &Shell{
		out:          &writer{lock: locked, to: out},
		err:          &writer{lock: locked, to: err},
		location:     time.Local,
		settings:     set,
		host:         set.server,
		printWatches: newToggle(true),
		history:      map[int]string{},
	}
	s.commands = slices.Concat(shellCommands(), zooKeeperCommands(), treeCommands(), interactiveCommands())
	slices.SortFunc(s.commands, func(a, b *command) int { return strings.Compare(a.name, b.name) })
	s.show, s.fail, s.onEvent = s.showText, s.failText, s.printEvent
	if set.json {
		s.useJSON()
	}
	return s
}

// showText prints a result as ZooKeeper's shell does.
func (s *Shell) showText(r result) error {
	out, err := &writeBuffer{to: s.out}, &writeBuffer{to: s.err}
	r.text(out, err)
	return errors.Join(err.flush(), out.flush())
}

// find returns a command by its name, or nil.
func (s *Shell) find(name string) *command {
	i := slices.IndexFunc(s.commands, func(c *command) bool { return c.name == name })
	if i < 0 {
		return nil
	}
	return s.commands[i]
}

// connected reports whether there is a session, or one that may still be taken up.
func (s *Shell) connected() bool { return s.zk != nil && !s.zk.State().Ended() }

// connect ends the session if there is one and opens another. It waits until that is there, for the session timeout at
// most; the error names every address and its cause.
func (s *Shell) connect(ctx context.Context, host string) error {
	s.close()
	s.host, s.auths = host, nil
	servers, chroot, err := client.ParseServers(host)
	if err != nil {
		return usageError(err.Error())
	}
	limited, cancel := context.WithTimeout(ctx, s.settings.timeout)
	defer cancel()
	zk, err := client.Connect(limited, client.Config{
		Servers:        servers,
		Chroot:         chroot,
		SessionTimeout: s.settings.timeout,
		ConnectTimeout: min(s.settings.timeout/time.Duration(len(servers)), connectTimeout),
		ReadOnly:       s.settings.readOnly,
		OnEvent:        s.event,
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return &client.Error{Op: "connect", Code: proto.ErrOperationTimeout, Cause: context.Cause(ctx)}
	case err != nil:
		return unreachable(err.Error())
	}
	s.zk = zk
	return nil
}

// connectTimeout is how long one server may take to give a session, if there is time for the others then.
const connectTimeout = 5 * time.Second

// close ends the session. Its error is of no use to anybody: a server that was not told ends the session by itself.
func (s *Shell) close() {
	if s.connected() {
		_ = s.zk.Close()
	}
}
