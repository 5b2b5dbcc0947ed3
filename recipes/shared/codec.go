package shared

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// codec is how a number is written. No data are 0.
type codec[T any] struct {
	encode func(T) []byte
	decode func([]byte) (T, error)
}

// Curator reads what it needs and ignores what follows, kazoo wants 4 bytes exactly. Nobody writes more.
var (
	long = codec[int64]{
		encode: func(x int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(x)) },
		decode: func(b []byte) (int64, error) {
			if len(b) == 0 {
				return 0, nil
			}
			if len(b) != 8 {
				return 0, fmt.Errorf("%w: %d bytes, not 8", ErrNotNumber, len(b))
			}
			return int64(binary.BigEndian.Uint64(b)), nil
		},
	}
	short = codec[int32]{
		encode: func(x int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(x)) },
		decode: func(b []byte) (int32, error) {
			if len(b) == 0 {
				return 0, nil
			}
			if len(b) != 4 {
				return 0, fmt.Errorf("%w: %d bytes, not 4", ErrNotNumber, len(b))
			}
			return int32(binary.BigEndian.Uint32(b)), nil
		},
	}
	decimal = codec[int64]{
		encode: func(x int64) []byte { return strconv.AppendInt(nil, x, 10) },
		decode: func(b []byte) (int64, error) {
			if len(b) == 0 {
				return 0, nil
			}
			x, err := strconv.ParseInt(string(b), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("%w: %q", ErrNotNumber, b)
			}
			return x, nil
		},
	}
	float = codec[float64]{
		encode: encodeFloat,
		decode: func(b []byte) (float64, error) {
			if len(b) == 0 {
				return 0, nil
			}
			x, err := strconv.ParseFloat(string(b), 64)
			if err != nil {
				return 0, fmt.Errorf("%w: %q", ErrNotNumber, b)
			}
			return x, nil
		},
	}
)

// encodeFloat writes what Python's repr does: the fewest digits that mean the same, with an exponent from 1e16 and below 1e-4.
func encodeFloat(x float64) []byte {
	switch {
	case math.IsNaN(x):
		return []byte("nan")
	case math.IsInf(x, 0):
		return []byte(strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(x, 'g', -1, 64), "+")))
	case x != 0 && (math.Abs(x) >= 1e16 || math.Abs(x) < 1e-4):
		return strconv.AppendFloat(nil, x, 'e', -1, 64)
	}
	b := strconv.AppendFloat(nil, x, 'f', -1, 64)
	if !strings.ContainsRune(string(b), '.') {
		b = append(b, ".0"...)
	}
	return b
}
