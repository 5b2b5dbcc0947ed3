package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/choose"
)

// attack is something that a stranger does to a server.
type attack struct {
	name string
	what string // for people, a line
	// ensemble: the ports between three members are attacked, in gozkd's format.
	ensemble bool
	// admin: the HTTP port is attacked.
	admin bool
	// web: REST is attacked, which ZooKeeper does not have.
	web bool
	// files bounds the server's file descriptors; 0: the limit of this process.
	files int
	// writes is the number of replicated writes per second that is allowed; 0: not judged.
	writes int
	// keys are lines of zoo.cfg besides the usual lines.
	keys map[string]string
	// run prepares the attack, calls ready, and goes on until ctx ends. It must survive every
	// answer, the end of connections, and the end of the server.
	run func(a *attacker)
}

// onlyGozkd reports whether the attack makes no sense against ZooKeeper.
func (a *attack) onlyGozkd() bool { return a.ensemble || a.web }

// allAttacks returns the attacks in the order of the table.
func allAttacks() []*attack {
	return slices.Concat(
		[]*attack{{name: "none", what: "nothing", run: func(a *attacker) {
			a.ready()
			<-a.ctx.Done()
		}}},
		requestAttacks(), memoryAttacks(), connectAttacks(), wordAttacks(), adminAttacks(), webAttacks(), peerAttacks(),
	)
}

// attacksNamed returns the attacks of a list of names.
func attacksNamed(names string) ([]*attack, error) {
	return choose.From(allAttacks(), func(a *attack) string { return a.name }, names)
}

// target tells the attacker where the server is.
type target struct {
	Addrs []string // for clients
	Admin string   // host:port of the HTTP port; empty: none
	// Peers and Elections are the ports for members, by member; empty for a standalone server.
	Peers, Elections []string
}

// harm is the attacker's finding at the end.
type harm struct {
	Notes    []string // for the table
	Breaches []string // what a stranger must not get
	Failed   string   // why the attack was not carried out
}

// attacker is the running attack. Its methods may be called from any goroutine.
type attacker struct {
	target

	ctx     context.Context
	ready   func()        // the attack proper begins
	dialed  atomic.Uint64 // counts connections
	running sync.WaitGroup

	mu   sync.Mutex
	harm harm
}

// note adds a remark to the table's row.
func (a *attacker) note(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.harm.Notes = append(a.harm.Notes, fmt.Sprintf(format, args...))
}

// breach notes that the stranger got secret data, once for each text.
func (a *attacker) breach(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if text := fmt.Sprintf(format, args...); !slices.Contains(a.harm.Breaches, text) {
		a.harm.Breaches = append(a.harm.Breaches, text)
	}
}

// each runs f in n goroutines, over and over until the attack ends: f returns when a connection
// breaks, and is called again after a pause.
func (a *attacker) each(n int, f func(i int)) {
	for i := range n {
		// Ends with the context of the attack; runAttack waits.
		a.running.Go(func() {
			for a.ctx.Err() == nil {
				f(i)
				a.pause()
			}
		})
	}
}

// attackCommand is the first argument of the process that attacks.
const attackCommand = "attack-process"

// runAttack attacks the target that it reads from in, until in ends. It prints a line when the
// preparation is over, and the harm at the end.
func runAttack(ctx context.Context, name string, in io.Reader, out io.Writer) {
	attacks := must.Get(attacksNamed(name))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a := &attacker{ctx: ctx}
	a.ready = sync.OnceFunc(func() { fmt.Fprintln(out, "ready") })
	must.Do(json.NewDecoder(in).Decode(&a.target))
	// Ends with the input, which the parent closes; the process does not wait for it.
	go func() {
		_, _ = io.Copy(io.Discard, in) // the end counts, not the reason
		cancel()
	}()
	err := must.Try(func() { attacks[0].run(a) })
	a.ready()
	if err != nil {
		a.mu.Lock()
		a.harm.Failed = err.Error()
		a.mu.Unlock()
	}
	<-ctx.Done()
	a.running.Wait()
	must.Do(json.NewEncoder(out).Encode(&a.harm))
}
