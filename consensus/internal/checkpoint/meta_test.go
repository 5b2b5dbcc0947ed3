package checkpoint

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"

	"github.com/gozkd/gozkd/internal/testkit/vfstest"
)

// Whichever bit of the newest meta page is damaged: the previous transaction counts.
func TestC4_EveryBitOfAMetaPage(t *testing.T) {
	mem := vfstest.NewMem()
	f, err := mem.Create("checkpoint.db")
	if err != nil {
		t.Fatal(err)
	}
	var old *pageReader
	for index := range uint64(2) {
		if err := mergeDelta(f, old, delta{"key": "value"}, index); err != nil {
			t.Fatal(err)
		}
		if old, err = newPageReader(f, NewestOfTwo); err != nil {
			t.Fatal(err)
		}
	}
	at := int64(old.txid%2) * old.pageSize
	for bit := range 8 * metaBytes {
		bad := bytes.Clone(old.raw)
		bad[pageHeader+bit/8] ^= 1 << (bit % 8)
		if _, err := f.WriteAt(bad, at); err != nil {
			t.Fatal(err)
		}
		if index, _, err := stateOf(f); err != nil || index != 0 {
			t.Errorf("bit %d damaged: transaction %d, %v; want transaction 0", bit, index, err)
		}
	}
}

// A stream that ends early is never taken for a whole checkpoint.
func TestStream_EveryTruncation(t *testing.T) {
	var whole bytes.Buffer
	if err := WriteStream(&whole, 7, testMeta(3), delta{"a": "1", "bb": "22", "ccc": ""}.Range); err != nil {
		t.Fatal(err)
	}
	for n := range whole.Len() + 1 {
		s, err := ReadStream(bytes.NewReader(whole.Bytes()[:n]))
		if err == nil {
			err = s.Range(func(_, _ []byte) error { return nil })
		}
		if (err == nil) != (n == whole.Len()) {
			t.Errorf("%d of %d bytes: %v", n, whole.Len(), err)
		}
	}
	for end, c := range map[string]struct {
		rest io.Reader
		want string
	}{
		"followed": {bytes.NewReader([]byte{0}), "checkpoint stream: bytes follow its end"},
		"broken":   {iotest.ErrReader(io.ErrUnexpectedEOF), io.ErrUnexpectedEOF.Error()},
	} {
		s, err := ReadStream(io.MultiReader(bytes.NewReader(whole.Bytes()), c.rest))
		if err == nil {
			err = s.Range(func(_, _ []byte) error { return nil })
		}
		if err == nil || err.Error() != c.want {
			t.Errorf("a stream whose end is %s: %v", end, err)
		}
	}
}
