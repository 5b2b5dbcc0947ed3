package shared

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/recipes"
)

type codec[T any] struct {
	encode func(T) ([]byte, error) // returns a new slice
	decode func([]byte) (T, error)
}

var (
	raw   = codec[[]byte]{sure(bytes.Clone), func(b []byte) ([]byte, error) { return b, nil }}
	long  = fixedSize[int64](8)
	short = fixedSize[int32](4)

	decimal = text(
		func(x int64) []byte { return strconv.AppendInt(nil, x, 10) },
		func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) })
	float = text(encodeFloat,
		func(s string) (float64, error) { return strconv.ParseFloat(s, 64) })
)

func sure[T any](encode func(T) []byte) func(T) ([]byte, error) {
	return func(x T) ([]byte, error) { return encode(x), nil }
}

// fixedSize returns the codec of a big-endian number. Missing data are 0. Curator ignores
// additional bytes and kazoo refuses them; this codec refuses them too, because nobody writes them.
func fixedSize[T int32 | int64](size int) codec[T] {
	return codec[T]{
		encode: sure(func(x T) []byte { return binary.BigEndian.AppendUint64(nil, uint64(x))[8-size:] }),
		decode: func(b []byte) (T, error) {
			if len(b) != 0 && len(b) != size {
				return 0, fmt.Errorf("shared: %w: %d bytes are not a number of %d", recipes.ErrFormat, len(b), size)
			}
			var x uint64
			for _, c := range b {
				x = x<<8 | uint64(c)
			}
			return T(x), nil
		},
	}
}

// text returns the codec of a number in digits. Missing data are 0.
func text[T int64 | float64](format func(T) []byte, parse func(string) (T, error)) codec[T] {
	return codec[T]{sure(format), func(b []byte) (T, error) {
		if len(b) == 0 {
			return 0, nil
		}
		x, err := parse(string(b))
		if err != nil {
			return 0, fmt.Errorf("shared: %w: %q is not such a number", recipes.ErrFormat, b)
		}
		return x, nil
	}}
}

// encodeFloat writes what Python's repr writes: the fewest digits that read back as x, with an
// exponent from 1e16 on and below 1e-4.
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
	if !bytes.ContainsRune(b, '.') {
		b = append(b, ".0"...)
	}
	return b
}
