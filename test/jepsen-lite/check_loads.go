package jepsenlite

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"

	"github.com/gozkd/gozkd/proto"
)

// findSet: a synced list contains what was acknowledged before it was requested, and nothing that
// was not requested before its reply.
func findSet(h []*Record, found func(string, ...*Record)) {
	added := map[string]*Record{} // by path
	var inOrder []*Record
	for _, r := range h {
		if isOf(r, loadSet) && r.Op == proto.OpCreate {
			added[r.Path()] = r
			inOrder = append(inOrder, r)
		}
	}
	for _, r := range h {
		if !isOf(r, loadSet) || r.Op != proto.OpGetChildren2 || !r.OK() || r.Synced == 0 {
			continue
		}
		there := map[string]bool{}
		for _, name := range r.Parts[0].Children {
			p := r.Path() + "/" + name
			there[p] = true
			if a := added[p]; a == nil || a.Call > r.Return {
				found("a list has "+p+", which nobody had added", r)
			} else if a.Answered() && a.Err != proto.OK {
				found(fmt.Sprintf("a list has %s, whose create had failed with %v", p, a.Err), a, r)
			}
		}
		for _, a := range inOrder {
			if a.OK() && a.Return < r.Synced && path.Dir(a.Path()) == r.Path() && !there[a.Path()] {
				found("a synced list does not have "+a.Path(), a, r)
			}
		}
	}
}

// findBank: the balances confirmed by a multi of checks add up to the initial sum.
func findBank(h []*Record, found func(string, ...*Record)) {
	type key struct{ client, path string }
	last := map[key]*Record{} // the reads before the multi
	for _, r := range h {
		if !isOf(r, loadBank) || !r.OK() {
			continue
		}
		if r.Op == proto.OpGetData {
			last[key{r.Client, r.Path()}] = r
			continue
		}
		if r.Op != proto.OpMulti || r.Parts[0].Op != proto.OpCheck {
			continue
		}
		sum, read := 0, []*Record{r}
		for _, p := range r.Parts {
			g := last[key{r.Client, p.Path}]
			if g == nil || g.Parts[0].Stat.Version != p.Version {
				break // read before the history begins
			}
			v, err := strconv.Atoi(g.Parts[0].Got)
			if err != nil {
				found(fmt.Sprintf("account %s holds %q", p.Path, g.Parts[0].Got), g)
			}
			sum += v
			read = append(read, g)
		}
		if len(read) == 1+bankAccounts && sum != bankAccounts*bankEach {
			found(fmt.Sprintf("the bank holds %d, want %d", sum, bankAccounts*bankEach), read...)
		}
	}
}

// findSequence: no sequential name is given twice, and a create sent after another of the same
// parent was answered gets a higher number.
func findSequence(h []*Record, found func(string, ...*Record)) {
	given := map[string]*Record{}
	byParent := map[string][]*Record{}
	for _, r := range h {
		if r.Op != proto.OpCreate || !r.OK() || !r.Parts[0].Mode.Sequential() {
			continue
		}
		made := r.Parts[0].Made
		if other := given[made]; other != nil {
			found(made+" was given twice", other, r)
		}
		given[made] = r
		byParent[r.Path()] = append(byParent[r.Path()], r) // the requested path: all names share a prefix and have ten digits
	}
	for _, creates := range byParent {
		answered := slices.Clone(creates)
		slices.SortFunc(answered, func(a, b *Record) int { return cmp.Compare(a.Return, b.Return) })
		slices.SortFunc(creates, func(a, b *Record) int { return cmp.Compare(a.Call, b.Call) })
		var highest *Record
		for _, r := range creates {
			for len(answered) > 0 && answered[0].Return < r.Call {
				if highest == nil || answered[0].Parts[0].Made > highest.Parts[0].Made {
					highest = answered[0]
				}
				answered = answered[1:]
			}
			if highest != nil && r.Parts[0].Made <= highest.Parts[0].Made {
				found(fmt.Sprintf("%s was given after %s", r.Parts[0].Made, highest.Parts[0].Made), highest, r)
			}
		}
	}
}

// A grant is an acquired lock: a client saw its own znode as the lowest.
type grant struct {
	token string  // name of the znode, which ends with its number
	saw   *Record // the list that showed it
	back  *Record // the delete that released it, if that succeeded
}

// findLock: tokens rise from holder to holder, and nobody acquires the lock while the znode of a
// holder with a lower token exists.
func findLock(h []*Record, found func(string, ...*Record)) {
	owner := map[string]string{} // client, by name of its znode
	grants := map[string]*grant{}
	var inOrder []*grant
	for _, r := range h {
		if !isOf(r, loadLock) || !r.OK() {
			continue
		}
		switch p := &r.Parts[0]; {
		case r.Op == proto.OpCreate && p.Mode.Sequential():
			owner[baseName(p.Made)] = r.Client
		case r.Op == proto.OpGetChildren2 && len(p.Children) > 0:
			lowest := slices.Min(p.Children)
			if owner[lowest] == r.Client && grants[lowest] == nil {
				grants[lowest] = &grant{token: lowest, saw: r}
				inOrder = append(inOrder, grants[lowest])
			}
		case r.Op == proto.OpDelete:
			if g := grants[baseName(p.Path)]; g != nil {
				g.back = r
			}
		}
	}
	slices.SortFunc(inOrder, func(a, b *grant) int { return cmp.Compare(a.saw.Return, b.saw.Return) })
	for i, a := range inOrder {
		for _, b := range inOrder[i+1:] {
			if a.saw.Return < b.saw.Call && b.token <= a.token {
				found(fmt.Sprintf("the lock was taken with the token %s after %s", b.token, a.token), a.saw, b.saw)
			}
			first, second := a, b
			if b.token < a.token {
				first, second = b, a
			}
			if first.back != nil && first.back.Call > second.saw.Return {
				found(fmt.Sprintf("the lock was taken with the token %s while %s held it", second.token, first.token), first.saw, second.saw, first.back)
			}
		}
	}
}

// findQueue: an item is taken at most once, an item that nobody took is there in the end, and
// nobody takes an item that was not put.
func findQueue(h []*Record, found func(string, ...*Record)) {
	put := map[string]*Record{}  // by the path returned
	data := map[string]*Record{} // by data, which is unique; also without a reply
	taken := map[string]*Record{}
	tried := map[string]bool{} // deletes without a reply
	var last *Record           // the last synced list
	for _, r := range h {
		if !isOf(r, loadQueue) {
			continue
		}
		switch p := &r.Parts[0]; {
		case r.Op == proto.OpCreate && p.Mode.Sequential():
			data[p.Data] = r
			if r.OK() {
				put[p.Made] = r
			}
		case r.Op == proto.OpDelete && r.OK():
			if other := taken[p.Path]; other != nil {
				found(p.Path+" was taken out twice", other, r)
			}
			taken[p.Path] = r
		case r.Op == proto.OpDelete && !r.Answered():
			tried[p.Path] = true
		case r.Op == proto.OpGetChildren2 && r.OK() && r.Synced != 0:
			last = r
		}
	}
	// A request without a reply is recorded when its connection ends, possibly after a client read
	// its result.
	for _, r := range h {
		if isOf(r, loadQueue) && r.Op == proto.OpGetData && r.OK() && data[r.Parts[0].Got] == nil {
			found(r.Path()+" holds what nobody put in", r)
		}
	}
	if last == nil {
		return
	}
	there := map[string]bool{}
	for _, name := range last.Parts[0].Children {
		p := path.Join(last.Path(), name)
		there[p] = true
		if t := taken[p]; t != nil && t.Return < last.Synced {
			found(p+" is there although it was taken out", t, last)
		}
	}
	for p, r := range put {
		if !there[p] && taken[p] == nil && !tried[p] && r.Return < last.Synced {
			found(p+" is gone, and nobody took it out", r, last)
		}
	}
}

// findPipeline: the n-th set of a connection creates version n, less one for each set before it
// that was refused because the ensemble was full. So none was lost, repeated or reordered. In the
// end the znode's data is the number of its last set.
func findPipeline(h []*Record, found func(string, ...*Record)) {
	acked, sent := map[string]*Record{}, map[string]int{} // by path: the last acknowledged one; the highest number
	created := map[string]*Record{}
	refused := map[string]int{}      // by path
	unanswered := map[string][]int{} // by path: the numbers
	full := false                    // a load was refused: others may have been, without an answer
	for _, r := range h {
		full = full || r.Err == proto.ErrQuotaExceeded
		if !isOf(r, loadPipeline) || path.Base(path.Dir(r.Path())) != loadPipeline {
			continue
		}
		p := &r.Parts[0]
		switch r.Op {
		case proto.OpCreate:
			created[p.Path] = r
		case proto.OpSetData:
			n, err := strconv.Atoi(p.Data)
			if err != nil {
				continue
			}
			sent[p.Path] = max(sent[p.Path], n)
			switch {
			case r.Err == proto.ErrQuotaExceeded:
				refused[p.Path]++
			case !r.Answered():
				unanswered[p.Path] = append(unanswered[p.Path], n)
			}
			if !r.OK() {
				continue
			}
			acked[p.Path] = r
			if int(p.Stat.Version) != n-refused[p.Path] {
				found(fmt.Sprintf("set %d of %s made version %d", n, p.Path, p.Stat.Version), r)
			}
		}
	}
	read := map[string]bool{}
	var looked *Record // the final look
	for _, r := range h {
		if isOf(r, loadFinal) && r.OK() && r.Op == proto.OpGetChildren2 && path.Base(r.Path()) == loadPipeline {
			looked = r
		}
		if !isOf(r, loadFinal) || !r.OK() || r.Op != proto.OpGetData || path.Base(path.Dir(r.Path())) != loadPipeline {
			continue
		}
		p := &r.Parts[0]
		read[p.Path] = true
		// Only the create succeeded: no data.
		n, err := strconv.Atoi(p.Got)
		missing, may := n-int(p.Stat.Version), refused[p.Path]
		if full {
			length := 0
			if a := acked[p.Path]; a != nil {
				length = len(a.Parts[0].Data)
			}
			for _, n := range unanswered[p.Path] {
				if len(strconv.Itoa(n)) > length { // it adds data
					may++
				}
			}
		}
		if err != nil && p.Got != "" || missing < 0 || missing > may || n > sent[p.Path] {
			found(fmt.Sprintf("%s holds %q with version %d, %d were sent", p.Path, p.Got, p.Stat.Version, sent[p.Path]), r)
		}
		if a := acked[p.Path]; a != nil && strconv.Itoa(n) != a.Parts[0].Data && n < int(a.Parts[0].Stat.Version)+refused[p.Path] {
			found(fmt.Sprintf("%s holds %d, but %s was acknowledged", p.Path, n, a.Parts[0].Data), a, r)
		}
		if c := created[p.Path]; c == nil {
			found(p.Path+" is there, and nobody made it", r)
		}
	}
	for p, c := range created {
		if looked != nil && c.OK() && !read[p] {
			found(p+" is gone", c, looked)
		}
	}
}
