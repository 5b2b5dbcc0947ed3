package exchange

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gozkd/gozkd/proto"
)

// recorded returns what test/golden has recorded from a ZooKeeper.
func recorded(t *testing.T) []*Transcript {
	t.Helper()
	files, err := filepath.Glob("../../../golden/testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	var all []*Transcript
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		list, err := ReadText(string(b))
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		all = append(all, list...)
	}
	return all
}

// copyOf returns a transcript that shares no frame with t.
func copyOf(tr *Transcript) *Transcript {
	c := *tr
	clone := func(items []Item) []Item {
		items = slices.Clone(items)
		for i := range items {
			items[i].Frame = slices.Clone(items[i].Frame)
		}
		return items
	}
	c.Steps = nil
	for _, items := range tr.Steps {
		c.Steps = append(c.Steps, clone(items))
	}
	c.Flush = make(map[int][]Item)
	for slot, items := range tr.Flush {
		c.Flush[slot] = clone(items)
	}
	return &c
}

func TestText_RoundTrip(t *testing.T) {
	all := recorded(t)
	var b, again bytes.Buffer
	if err := WriteText(&b, all); err != nil {
		t.Fatal(err)
	}
	list, err := ReadText(b.String())
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteText(&again, list); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), again.Bytes()) {
		t.Error("a recording that was read and written is not the same")
	}
}

// Every field of every frame counts: a transcript in which any one is changed is not equal to the
// original. The times are an exception, each alone: they only need to agree with others of the same
// zxid.
func TestCompare_FindsEveryChangedField(t *testing.T) {
	changed, missed := 0, 0
	for _, tr := range recorded(t)[:60] {
		if m := Compare(tr, copyOf(tr), nil, nil); m != nil {
			t.Fatalf("%s is not equal to itself: %v", tr.Sequence.Name, m)
		}
		var places [][2]int
		for i, items := range tr.Steps {
			for k := range items {
				places = append(places, [2]int{i, k})
			}
		}
		for _, p := range places {
			messages := tr.Messages(p[0])
			for _, f := range messages[p[1]].Fields {
				if f.Kind == TimeMs || f.Kind == ZxidOf && f.N > 0 {
					continue // compared by their place among others
				}
				c := copyOf(tr)
				frame := c.Steps[p[0]][p[1]].Frame
				at := f.Off
				if f.Kind == Plain && f.S != "" && len(frame) >= f.Off+4 && f.S != "true" && f.S != "false" {
					if n := int32(binary.BigEndian.Uint32(frame[f.Off:])); n > 0 && f.Off+4 < len(frame) {
						at = f.Off + 4 // the content, not the length
					}
				}
				if at >= len(frame) {
					continue
				}
				frame[at] ^= 0x01
				changed++
				if Compare(tr, c, nil, nil) == nil {
					missed++
					t.Errorf("%s step %d: a change of %v at %d is not noticed", tr.Sequence.Name, p[0], f, at)
				}
			}
		}
	}
	if changed < 1000 {
		t.Errorf("only %d fields were changed", changed)
	}
	t.Logf("%d changes, %d missed", changed, missed)
}

// Zxids count by their order: one that is moved past another is noticed, all of them moved together
// are not.
func TestCompare_ZxidOrder(t *testing.T) {
	for _, tr := range recorded(t)[:60] {
		shifted := copyOf(tr)
		shifted.eachField(func(frame []byte, f Field) {
			if f.Kind == ZxidOf && f.N > 0 {
				binary.BigEndian.PutUint64(frame[f.Off:], uint64(f.N)<<4|1<<32)
			}
		})
		if m := Compare(tr, shifted, nil, nil); m != nil {
			t.Fatalf("%s: zxids in the same order are not equal: %v", tr.Sequence.Name, m)
		}
		swapped, n := copyOf(tr), 0
		swapped.eachField(func(frame []byte, f Field) {
			if f.Kind == ZxidOf && f.N > 1 {
				if n++; n == 3 {
					binary.BigEndian.PutUint64(frame[f.Off:], uint64(f.N-1))
				}
			}
		})
		if n > 3 && Compare(tr, swapped, nil, nil) == nil {
			t.Errorf("%s: a zxid out of its order is not noticed", tr.Sequence.Name)
		}
	}
}

// A missing, doubled or exchanged message is noticed.
func TestCompare_Messages(t *testing.T) {
	for _, tr := range recorded(t)[:60] {
		for i := range tr.Steps {
			if len(tr.Steps[i]) == 0 {
				continue
			}
			c := copyOf(tr)
			c.Steps[i] = c.Steps[i][1:]
			if Compare(tr, c, nil, nil) == nil {
				t.Errorf("%s: the first message of step %d is missing, and that is not noticed", tr.Sequence.Name, i)
			}
			c = copyOf(tr)
			c.Steps[i] = append(c.Steps[i], Item{Note: NoteClosed})
			if Compare(tr, c, nil, nil) == nil {
				t.Errorf("%s: a close after step %d is not noticed", tr.Sequence.Name, i)
			}
		}
	}
}

// Two sessions of a server may have the same password, as they may on a ZooKeeper ensemble. The
// password in a connect response belongs to the session in it.
func TestCompare_EqualPasswords(t *testing.T) {
	played := func(passwords ...string) *Transcript {
		tr := &Transcript{Sequence: &Sequence{}, Sessions: make(map[int]Session)}
		for slot, passwd := range passwords {
			s := Session{proto.SessionID(0x1000 + slot), []byte(passwd)}
			resp := proto.ConnectResponse{TimeoutMs: 30000, SessionID: s.ID, Passwd: s.Passwd}
			tr.Sequence.Steps = append(tr.Sequence.Steps, Step{Connect: &Connect{Session: slot, How: HowNew}})
			tr.Steps = append(tr.Steps, []Item{{Frame: resp.Append(nil)}})
			tr.Sessions[slot] = s
		}
		return tr
	}
	const one, other = "0123456789abcdef", "fedcba9876543210"
	if m := Compare(played(one, one), played(one, other), nil, nil); m != nil {
		t.Errorf("sessions with their passwords differ: %v", m)
	}
	wrong := played(one, other)
	wrong.Steps[1][0].Frame = played(one, one).Steps[1][0].Frame // the password of the first session
	if Compare(played(one, other), wrong, nil, nil) == nil {
		t.Error("the password of another session is not noticed")
	}
	plain, twice := played(one, other), played(one, one)
	plain.Normalize()
	twice.Normalize()
	if m := Compare(plain, twice, nil, nil); m != nil {
		t.Errorf("normalized: %v", m)
	}
	for slot, s := range twice.Sessions {
		if f := twice.Messages(slot)[0].Fields; !slices.ContainsFunc(f, func(f Field) bool { return f.Kind == Secret && s.has(&f) }) {
			t.Errorf("session %d has the password of another after Normalize: %v", slot, f)
		}
	}
}
