package queue

import "encoding/binary"

// Curator's ItemSerializer writes into a znode:
//
//	int32 version 0x00010001, then for each item: byte 1, int32 length, that many bytes; then byte 2. Numbers are big-endian.
const (
	frameVersion = 0x00010001
	frameItem    = 1
	frameEnd     = 2
)

// frame writes items as Curator does.
func frame(items ...[]byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, frameVersion)
	for _, item := range items {
		b = append(b, frameItem)
		b = binary.BigEndian.AppendUint32(b, uint32(len(item)))
		b = append(b, item...)
	}
	return append(b, frameEnd)
}

// unframe returns the items that Curator, or frame, has written: parts of b. What follows the end is not looked at, as Curator doesn't.
func unframe(b []byte) ([][]byte, error) {
	if len(b) < 4 || binary.BigEndian.Uint32(b) != frameVersion {
		return nil, ErrFrame
	}
	var items [][]byte
	for b = b[4:]; len(b) > 0; {
		switch b[0] {
		case frameEnd:
			return items, nil
		case frameItem:
			if len(b) < 5 {
				return nil, ErrFrame
			}
			n := binary.BigEndian.Uint32(b[1:])
			if uint64(n) > uint64(len(b)-5) {
				return nil, ErrFrame
			}
			items = append(items, b[5:5+n:5+n])
			b = b[5+n:]
		default:
			return nil, ErrFrame
		}
	}
	return nil, ErrFrame
}
