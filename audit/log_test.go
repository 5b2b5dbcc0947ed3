package audit_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/gozkd/gozkd/audit"
	"github.com/gozkd/gozkd/proto"
)

// disk is a file on a disk that may be full, or hang.
type disk struct {
	mu    sync.Mutex
	text  bytes.Buffer
	full  bool
	room  int           // bytes that a full disk takes
	gate  chan struct{} // a write waits until it is closed; nil: it does not
	tries int
}

var errFull = errors.New("no space left")

func (d *disk) Write(b []byte) (int, error) {
	d.mu.Lock()
	gate := d.gate
	d.mu.Unlock()
	if gate != nil {
		<-gate
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tries++
	if d.full {
		n := min(d.room, len(b))
		d.room -= n
		d.text.Write(b[:n])
		return n, errFull
	}
	return d.text.Write(b)
}

func (d *disk) set(full bool, room int, gate chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full, d.room, d.gate = full, room, gate
}

func (d *disk) lines() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Split(strings.TrimSuffix(d.text.String(), "\n"), "\n")
}

// short is a format with one word per line.
func short(b []byte, e *audit.Event) []byte {
	if e.Operation == audit.Dropped {
		return fmt.Appendf(b, "dropped=%d\n", e.Count)
	}
	return append(append(b, e.Detail...), '\n')
}

func record(l *audit.Log, first, n int) {
	for i := range n {
		l.Record(&audit.Event{Operation: audit.Create, Detail: fmt.Sprint(first + i)})
	}
}

func counts(t *testing.T, l *audit.Log, taken, dropped int64) {
	t.Helper()
	if a, b := l.Counts(); a != taken || b != dropped {
		t.Errorf("%d events taken and %d dropped, want %d and %d", a, b, taken, dropped)
	}
}

func want(t *testing.T, d *disk, lines ...string) {
	t.Helper()
	if got := d.lines(); strings.Join(got, " ") != strings.Join(lines, " ") {
		t.Errorf("got %q, want %q", got, lines)
	}
}

// Events keep their order, and Close writes all of them.
func TestLog_Close(t *testing.T) {
	d := new(disk)
	l := audit.New(d, audit.Options{Format: short})
	var lines []string
	for i := range 2000 {
		lines = append(lines, fmt.Sprint(i))
	}
	record(l, 0, 2000)
	l.Close()
	l.Close()
	want(t, d, lines...)
	counts(t, l, 2000, 0)
	record(l, 0, 1)
	counts(t, l, 2001, 1)
}

// While a write hangs, Record does not wait. What finds no room is counted, and a line says so.
func TestLog_Full(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		d := &disk{gate: gate}
		l := audit.New(d, audit.Options{Format: short, MaxBytes: 1000}) // three events
		defer l.Close()
		record(l, 0, 1)
		synctest.Wait() // the write hangs
		record(l, 1, 9)
		if counts(t, l, 10, 7); l.Full() {
			t.Error("clients would wait")
		}
		close(gate)
		synctest.Wait()
		want(t, d, "0", "1", "2", "dropped=7")
		record(l, 10, 1)
		synctest.Wait()
		want(t, d, "0", "1", "2", "dropped=7", "10")
	})
}

// All texts of an event count as memory: those that clients choose may be long.
func TestLog_CountsAllTexts(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for name, e := range map[string]*audit.Event{
		"path":               {Znode: long},
		"detail":             {Detail: long},
		"identity":           {IDs: []proto.ID{{Scheme: "digest", ID: long}}},
		"scheme":             {IDs: []proto.ID{{Scheme: long}}},
		"identity in a list": {ACL: []proto.ACL{{ID: proto.ID{ID: long}}}},
		"scheme in a list":   {ACL: []proto.ACL{{ID: proto.ID{Scheme: long}}}},
	} {
		l := audit.New(new(disk), audit.Options{Format: short, MaxBytes: 1000})
		l.Record(e)
		if _, dropped := l.Counts(); dropped != 1 {
			t.Errorf("%s: an event of more than 1000 bytes finds room", name)
		}
		l.Close()
	}
}

// A disk without room costs lines, which are counted, and one message. The next line after that
// begins on a line of its own.
func TestLog_WriteFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, failures := new(disk), 0
		l := audit.New(d, audit.Options{Format: short, Failed: func(error) { failures++ }})
		record(l, 10, 1)
		synctest.Wait()
		d.set(true, 1, nil)
		for i := range 3 {
			record(l, 20+i, 1)
			synctest.Wait()
		}
		counts(t, l, 4, 3)
		d.set(false, 0, nil)
		record(l, 30, 1)
		synctest.Wait()
		if want(t, d, "10", "2", "30", "dropped=3"); failures != 1 {
			t.Errorf("%d messages", failures)
		}
		l.Close()
	})
}

// With Block, nothing is lost: clients wait while the disk is full, and what was torn is written
// to its end.
func TestLog_Block(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, failures := new(disk), 0
		l := audit.New(d, audit.Options{Format: short, MaxBytes: 1000, Block: true, Failed: func(error) { failures++ }})
		d.set(true, 3, nil)
		record(l, 10, 5)
		synctest.Wait()
		room := l.Room()
		select {
		case <-room:
			t.Error("there is room")
		default:
		}
		if !l.Full() || failures != 1 {
			t.Errorf("full: %t, %d messages", l.Full(), failures)
		}
		d.set(false, 0, nil)
		<-room // in virtual time, after the next try
		synctest.Wait()
		if want(t, d, "10", "11", "12", "13", "14"); l.Full() {
			t.Error("clients wait for nothing")
		}
		counts(t, l, 5, 0)
		<-l.Room()
		l.Close()
	})
}

// The memory of events is bounded even then, and Close does not wait for a disk that stays full.
func TestLog_BlockFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := new(disk)
		l := audit.New(d, audit.Options{Format: short, MaxBytes: 1000, Block: true})
		d.set(true, 0, nil)
		record(l, 0, 1000)
		synctest.Wait()
		_, dropped := l.Counts()
		if kept := 1000 - dropped; kept < 40 || kept > 60 {
			t.Errorf("%d events kept", kept)
		}
		room := l.Room()
		l.Close()
		<-room
		counts(t, l, 1000, 1000)
	})
}
