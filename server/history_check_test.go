package server_test

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/gozkd/gozkd/proto"
)

// action is a request of a client and its reply. Every value is written only once.
type action struct {
	client, key  int
	kind         actionKind
	value        int   // written, or read
	version      int32 // cas: the expected version; otherwise that of the written or read value
	result       result
	zxid         proto.Zxid // of the reply's header
	mzxid        proto.Zxid // of the znode, as the reply's Stat says
	call, end    int64      // times on one clock for all clients; end is never if the outcome is unknown
	fromReadOnly bool       // the server was read-only
	reply        int64      // time of the reply, which orders the replies of a client; 0: none
}

type actionKind uint8

const (
	actionSet      actionKind = iota // whatever the version is
	actionCAS                        // if the version is the expected one
	actionSyncRead                   // after a sync
	actionRead                       // from the server's own state
)

type result uint8

const (
	resultUnknown result = iota // no reply came
	resultOK
	resultBadVersion
)

// never is later than every time.
const never = math.MaxInt64

func (k actionKind) String() string { return [...]string{"set", "cas", "sync and read", "read"}[k] }
func (r result) String() string     { return [...]string{"unknown", "ok", "bad version"}[r] }

func (a action) String() string {
	return fmt.Sprintf("client %d: %v /k%d value %d version %d: %v, zxid %v, mzxid %v, from %d to %d",
		a.client, a.kind, a.key, a.value, a.version, a.result, a.zxid, a.mzxid, a.call, a.end)
}

// Guarantees that checkHistory checks.
var (
	errNotLinearizable = errors.New("writes and synced reads are not linearizable")
	errUndecided       = errors.New("whether writes and synced reads are linearizable was not decided in time")
	errZxidWentBack    = errors.New("a client's zxid went back")
	errStateWentBack   = errors.New("a client saw an older state than before")
	errOwnWriteUnseen  = errors.New("a client did not see its own write")
	errTwoOrders       = errors.New("zxids are not in one order everywhere")
)

// checkHistory checks the replies that clients saw against the guarantees.
func checkHistory(history []action) error {
	return errors.Join(checkSessions(history), checkOrder(history), checkLinearizable(history))
}

// checkSessions checks for each client that zxids never decrease, that the states it reads never go
// back, across all servers that it was connected to, and that it sees its own writes.
func checkSessions(history []action) (err error) {
	type place struct{ client, key int }
	last := make(map[int]action)
	seen := make(map[place]action)
	for _, a := range inOrderOfReplies(history) {
		if before := last[a.client]; a.zxid < before.zxid {
			err = errors.Join(err, fmt.Errorf("%w: %v, after %v", errZxidWentBack, a, before))
		}
		last[a.client] = a
		if a.result != resultOK {
			continue
		}
		at := place{a.client, a.key}
		before := seen[at]
		switch {
		case a.mzxid >= before.mzxid:
		case before.kind <= actionCAS:
			err = errors.Join(err, fmt.Errorf("%w: %v, after %v", errOwnWriteUnseen, a, before))
		default:
			err = errors.Join(err, fmt.Errorf("%w: %v, after %v", errStateWentBack, a, before))
		}
		seen[at] = a
	}
	return err
}

func inOrderOfReplies(history []action) []action {
	replied := slices.DeleteFunc(slices.Clone(history), func(a action) bool { return a.reply == 0 })
	slices.SortStableFunc(replied, func(a, b action) int { return cmp.Compare(a.reply, b.reply) })
	return replied
}

// checkOrder checks that all clients saw the same state of a znode under the same zxid, that
// versions rise with zxids, and that no two writes have the same zxid.
func checkOrder(history []action) (err error) {
	states := make(map[proto.Zxid]action)
	for _, a := range history {
		if a.result != resultOK {
			continue
		}
		known, ok := states[a.mzxid]
		if ok && (known.key != a.key || known.version != a.version || known.value != a.value) {
			err = errors.Join(err, fmt.Errorf("%w: %v, and %v", errTwoOrders, a, known))
		}
		states[a.mzxid] = a
	}
	versions := make(map[int]action) // by key, the newest one
	for _, zxid := range slices.Sorted(keysOf(states)) {
		a := states[zxid]
		if before, ok := versions[a.key]; ok && a.version <= before.version {
			err = errors.Join(err, fmt.Errorf("%w: %v, and %v", errTwoOrders, a, before))
		}
		versions[a.key] = a
	}
	return err
}

func keysOf[K comparable, V any](m map[K]V) func(yield func(K) bool) {
	return func(yield func(K) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// register is the model of a znode.
type register struct {
	value   int
	version int32
}

// observed is what replies to all clients say about the writes to a znode.
type observed struct {
	values   map[int32]int // by version
	versions map[int]int32 // by value
}

func observe(history []action, key int) *observed {
	o := &observed{make(map[int32]int), make(map[int]int32)}
	for _, a := range history {
		if a.key == key && a.result == resultOK {
			o.values[a.version], o.versions[a.value] = a.value, a.version
		}
	}
	return o
}

// step returns the states in which the znode may be after an action.
func (r register) step(a action, o *observed) []register {
	written := register{a.value, r.version + 1}
	switch {
	case a.kind == actionSyncRead && r == register{a.value, a.version}:
		return []register{r}
	case a.kind == actionSyncRead:
		return nil
	case a.result == resultUnknown:
		return r.stepUnknown(a, o)
	case a.result == resultBadVersion && r.version != a.version:
		return []register{r}
	case a.result == resultBadVersion:
		return nil
	case written.version == a.version: // as the reply to a successful cas, see recorder
		return []register{written}
	}
	return nil
}

// stepUnknown is the step of a write without a reply. Each such write doubles the states of a
// search that only knows that it may have been applied, so use is made of what clients read: a
// write whose value was read made the version that was read with it, and another write made no
// version whose value was read.
func (r register) stepUnknown(a action, o *observed) []register {
	written := register{a.value, r.version + 1}
	applies := a.kind != actionCAS || r.version == a.version
	if version, read := o.versions[a.value]; read {
		if applies && version == written.version {
			return []register{written}
		}
		return nil
	}
	if _, other := o.values[written.version]; applies && !other {
		return []register{r, written}
	}
	return []register{r}
}

// patience bounds the search for an order.
const patience = 5 * time.Minute

func checkLinearizable(history []action) error {
	replies := make(map[int]*observed)
	for _, a := range history {
		if replies[a.key] == nil {
			replies[a.key] = observe(history, a.key)
		}
	}
	model := (&porcupine.NondeterministicModel{
		Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
			parts := make(map[int][]porcupine.Operation)
			for _, o := range all {
				key := o.Input.(action).key
				parts[key] = append(parts[key], o)
			}
			var byKey [][]porcupine.Operation
			for _, key := range slices.Sorted(keysOf(parts)) {
				byKey = append(byKey, parts[key])
			}
			return byKey
		},
		Init: func() []any { return []any{register{}} },
		Step: func(state, input, _ any) (next []any) {
			for _, r := range state.(register).step(input.(action), replies[input.(action).key]) {
				next = append(next, r)
			}
			return next
		},
		DescribeOperation: func(input, _ any) string { return input.(action).String() },
	}).ToModel()
	var all []porcupine.Operation
	for _, a := range history {
		if a.kind == actionRead || a.kind == actionSyncRead && a.result == resultUnknown {
			continue
		}
		all = append(all, porcupine.Operation{ClientId: a.client, Input: a, Call: a.call, Return: a.end})
	}
	switch porcupine.CheckOperationsTimeout(model, all, patience) {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return errUndecided
	}
	return errNotLinearizable
}

// The checks find each kind of violation, planted in a good history.
func TestHistory_FindsPlantedViolations(t *testing.T) {
	set := func(client, value int, version int32, zxid proto.Zxid, call, end int64) action {
		return action{client: client, kind: actionSet, value: value, version: version, result: resultOK, zxid: zxid, mzxid: zxid,
			call: call, end: end, reply: end}
	}
	read := func(client int, kind actionKind, value int, version int32, mzxid, zxid proto.Zxid, call, end int64) action {
		return action{client: client, kind: kind, value: value, version: version, result: resultOK, zxid: zxid, mzxid: mzxid,
			call: call, end: end, reply: end}
	}
	lost := func(client, value int, call, end int64) action {
		return action{client: client, kind: actionSet, value: value, call: call, end: end}
	}
	good := []action{
		set(1, 11, 1, 101, 1, 4),
		set(2, 21, 2, 102, 2, 3), // its reply came first
		read(1, actionSyncRead, 21, 2, 102, 102, 5, 6),
		read(3, actionRead, 11, 1, 101, 101, 7, 8), // stale, which is allowed
		lost(2, 22, 9, 20),
		set(1, 12, 4, 104, 10, 11), // so the lost write was applied
		read(3, actionRead, 22, 3, 103, 103, 12, 13),
		read(3, actionSyncRead, 12, 4, 104, 104, 14, 15),
		{client: 3, kind: actionCAS, value: 31, version: 3, result: resultBadVersion, zxid: 105, call: 16, end: 17, reply: 17},
		lost(3, 32, 18, 20), // this one was not
		read(1, actionSyncRead, 12, 4, 104, 106, 21, 22),
	}
	if err := checkHistory(good); err != nil {
		t.Fatal("the good history:", err)
	}
	for name, planted := range map[string]struct {
		more []action
		want error
	}{
		"a write that was acknowledged is gone": {[]action{
			set(1, 13, 5, 107, 23, 24), read(2, actionSyncRead, 12, 4, 104, 108, 25, 26),
		}, errNotLinearizable},
		"a synced read is stale": {[]action{
			set(1, 13, 5, 107, 23, 24), read(3, actionSyncRead, 12, 4, 104, 106, 25, 26),
		}, errNotLinearizable},
		"a write is applied twice": {[]action{set(1, 13, 5, 107, 23, 24), set(1, 14, 7, 109, 25, 26)}, errNotLinearizable},
		"a write whose connection is gone is applied later than it may": {[]action{
			lost(2, 23, 23, 24), read(3, actionSyncRead, 12, 4, 104, 107, 25, 26), read(3, actionSyncRead, 23, 5, 108, 108, 27, 28),
		}, errNotLinearizable},
		"two writes have the same version":            {[]action{set(1, 13, 5, 107, 23, 25), set(2, 23, 5, 108, 23, 25)}, errNotLinearizable},
		"a version is wanted, wrong, and yet written": {[]action{set(1, 13, 5, 107, 23, 24), {client: 2, kind: actionCAS, value: 23, version: 5, result: resultBadVersion, zxid: 108, call: 25, end: 26, reply: 26}}, errNotLinearizable},
		"a reply's zxid is lower than the one before": {[]action{read(1, actionRead, 12, 4, 104, 105, 23, 24)}, errZxidWentBack},
		"a read is older than the one before":         {[]action{read(1, actionRead, 22, 3, 103, 107, 23, 24)}, errStateWentBack},
		"a read does not show the client's own write": {[]action{set(2, 23, 5, 107, 23, 24), read(2, actionRead, 12, 4, 104, 107, 25, 26)}, errOwnWriteUnseen},
		"two states under one zxid":                   {[]action{read(4, actionRead, 99, 4, 104, 104, 23, 24)}, errTwoOrders},
		"versions fall while zxids rise":              {[]action{read(4, actionRead, 99, 2, 107, 107, 23, 24)}, errTwoOrders},
	} {
		if err := checkHistory(append(slices.Clone(good), planted.more...)); !errors.Is(err, planted.want) {
			t.Errorf("%s: %v, want %v", name, err, planted.want)
		}
	}
}
