package jepsenlite

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/gozkd/gozkd/proto"
)

// A znode is the state of the model: a znode that is created, set, deleted and read.
type znode struct {
	exists  bool
	data    string
	version int32
}

// modelStep reports whether a znode in state s may answer a request as it did, and returns the next
// state. A request without a reply may take effect; that it may have none follows from trying it at
// the very end too.
func modelStep(s znode, r *Record) (bool, znode) {
	p := &r.Parts[0]
	known := r.Answered()
	switch r.Op {
	case proto.OpCreate:
		if s.exists {
			return !known || r.Err == proto.ErrNodeExists, s
		}
		return !known || r.Err == proto.OK, znode{exists: true, data: p.Data}
	case proto.OpSetData, proto.OpDelete:
		switch {
		case !s.exists:
			return !known || r.Err == proto.ErrNoNode, s
		case p.Version != -1 && p.Version != s.version:
			return !known || r.Err == proto.ErrBadVersion, s
		case r.Op == proto.OpDelete:
			return !known || r.Err == proto.OK, znode{}
		}
		next := znode{exists: true, data: p.Data, version: s.version + 1}
		return !known || r.Err == proto.OK && p.Stat.Version == next.version, next
	case proto.OpGetData:
		if !s.exists {
			return r.Err == proto.ErrNoNode, s
		}
		return r.Err == proto.OK && p.Got == s.data && p.Stat.Version == s.version, s
	}
	return false, s
}

// registerModel is modelStep for porcupine, a znode per path.
func registerModel() porcupine.Model {
	return porcupine.Model{
		Partition: func(ops []porcupine.Operation) [][]porcupine.Operation {
			byPath := map[string][]porcupine.Operation{}
			for _, o := range ops {
				path := o.Input.(*Record).Path()
				byPath[path] = append(byPath[path], o)
			}
			var parts [][]porcupine.Operation
			for _, path := range slices.Sorted(maps.Keys(byPath)) {
				parts = append(parts, byPath[path])
			}
			return parts
		},
		Init: func() any { return znode{} },
		Step: func(state, input, _ any) (bool, any) {
			ok, next := modelStep(state.(znode), input.(*Record))
			return ok, next
		},
		DescribeOperation: func(input, _ any) string { return describe(input.(*Record)) },
		DescribeState: func(state any) string {
			s := state.(znode)
			if !s.exists {
				return "none"
			}
			return fmt.Sprintf("%s v%d", s.data, s.version)
		},
	}
}

func describe(r *Record) string {
	p := &r.Parts[0]
	s := fmt.Sprintf("%d %v %s", r.Seq, r.Op, baseName(p.Path))
	if r.Op == proto.OpSetData || r.Op == proto.OpDelete {
		s += fmt.Sprintf(" if v%d", p.Version)
	}
	if p.Data != "" {
		s += " " + p.Data
	}
	switch {
	case !r.Answered():
		return s + " -> ?"
	case r.Err != proto.OK:
		return fmt.Sprintf("%s -> %v", s, r.Err)
	case r.Op == proto.OpDelete:
		return s + " -> OK"
	}
	return fmt.Sprintf("%s -> %s v%d", s, p.Got, p.Stat.Version)
}

// registerOperations returns the operations of the register load for porcupine. A synced read takes
// from its sync to its reply. Unsynced reads promise less and are left out, as are requests that
// certainly had no effect.
func registerOperations(h []*Record) []porcupine.Operation {
	var ops []porcupine.Operation
	clients := map[string]int{}
	seen := map[string]*Record{} // by data: the earliest reply that shows it
	for _, r := range h {
		if isOf(r, loadRegister) && r.OK() && r.Op == proto.OpGetData {
			if s := seen[r.Parts[0].Got]; s == nil || r.Return < s.Return {
				seen[r.Parts[0].Got] = r
			}
		}
	}
	for _, r := range h {
		if !isOf(r, loadRegister) || r.Op == proto.OpSync {
			continue
		}
		if _, ok := clients[r.Client]; !ok {
			clients[r.Client] = len(clients)
		}
		o := porcupine.Operation{ClientId: clients[r.Client], Input: r, Call: int64(r.Call), Return: int64(r.Return)}
		switch {
		case r.Op == proto.OpGetData && (r.Synced == 0 || !r.Answered()):
			continue
		case r.Op == proto.OpGetData:
			o.Call = int64(r.Synced)
		case !r.Answered():
			// Open-ended, unless a read showed its result: then it took effect before that reply.
			o.Return = math.MaxInt64
			if s := seen[r.Parts[0].Data]; s != nil && r.Op != proto.OpDelete {
				o.Return = int64(s.Return)
			}
		case r.Err == proto.ErrSessionExpired || r.Err == proto.ErrSessionMoved || r.Err == proto.ErrQuotaExceeded:
			continue
		}
		ops = append(ops, o)
	}
	slices.SortStableFunc(ops, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	return ops
}

// porcupinePatience bounds the check of a round. An undecided check counts as an anomaly.
const porcupinePatience = 2 * time.Minute

// CheckRegisters checks that the znodes of the register load are linearizable. If not, it writes a
// picture to dir, unless dir is empty.
func CheckRegisters(h []*Record, dir string) []Anomaly {
	return checkRegisters(h, dir, porcupinePatience)
}

func checkRegisters(h []*Record, dir string, patience time.Duration) []Anomaly {
	model := registerModel()
	var anomalies []Anomaly
	// Each znode separately, so that the picture shows the failing znode.
	for _, ops := range model.Partition(registerOperations(h)) {
		result, info := porcupine.CheckOperationsVerbose(model, ops, patience)
		if result == porcupine.Ok {
			continue
		}
		path := ops[0].Input.(*Record).Path()
		a := Anomaly{Check: "linearizable", What: fmt.Sprintf("%s: porcupine says %s", path, result)}
		for _, o := range ops {
			a.Records = append(a.Records, o.Input.(*Record).Seq)
		}
		if dir != "" {
			file := filepath.Join(dir, "porcupine"+strings.ReplaceAll(path, "/", "-")+".html")
			if err := visualize(model, info, file); err != nil {
				a.What += "; no picture: " + err.Error()
			} else {
				a.What += "; picture: " + file
			}
		}
		anomalies = append(anomalies, a)
	}
	return anomalies
}

func visualize(model porcupine.Model, info porcupine.LinearizationInfo, file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := porcupine.Visualize(model, info, f); err != nil {
		_ = f.Close() // the earlier error says more
		return err
	}
	return f.Close()
}
