package archive

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/gozkd/gozkd/consensus"
)

// BenchmarkEncodeLog is what archiving costs per byte of the log: batches of 100 requests of 130
// bytes, of which 100 are random.
func BenchmarkEncodeLog(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	var entries []consensus.LogEntry
	size := 0
	for i := range 100 {
		data := []byte{5, 0, 1, 1, 1, 7, 1, 100}
		for range 100 {
			data = append(data, "setData /bench/000000000000000"...)
			for range 100 / 8 {
				data = binary.LittleEndian.AppendUint64(data, r.Uint64())
			}
		}
		e, err := consensus.DecodeLogEntry(uint64(i+1), data)
		if err != nil {
			b.Fatal(err)
		}
		entries, size = append(entries, e), size+len(data)
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		encodeLog(ensemble, position{}, entries)
	}
}
