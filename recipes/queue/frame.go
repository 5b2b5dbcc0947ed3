package queue

import (
	"encoding/binary"
	"fmt"

	"github.com/gozkd/gozkd/recipes"
)

// Curator's ItemSerializer encodes the items of a znode, with big-endian numbers, as:
//
//	int32 0x00010001 (version)
//	for each item: byte 1, int32 length, that many bytes
//	byte 2
const (
	frameVersion = 0x00010001
	frameItem    = 1
	frameEnd     = 2
)

var errFrame = fmt.Errorf("queue: %w: item is not encoded as Curator encodes items", recipes.ErrFormat)

// frame encodes items as Curator does.
func frame(items ...[]byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, frameVersion)
	for _, item := range items {
		b = append(b, frameItem)
		b = binary.BigEndian.AppendUint32(b, uint32(len(item)))
		b = append(b, item...)
	}
	return append(b, frameEnd)
}

// unframe decodes items that Curator or frame encoded. The items alias b. Like Curator, unframe
// ignores bytes after the end mark.
func unframe(b []byte) ([][]byte, error) {
	if len(b) < 4 || binary.BigEndian.Uint32(b) != frameVersion {
		return nil, errFrame
	}
	var items [][]byte
	for b = b[4:]; len(b) > 0; {
		switch b[0] {
		case frameEnd:
			return items, nil
		case frameItem:
			if len(b) < 5 || uint64(binary.BigEndian.Uint32(b[1:])) > uint64(len(b)-5) {
				return nil, errFrame
			}
			n := binary.BigEndian.Uint32(b[1:])
			items = append(items, b[5:5+n:5+n])
			b = b[5+n:]
		default:
			return nil, errFrame
		}
	}
	return nil, errFrame
}
