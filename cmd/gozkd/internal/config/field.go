package config

import (
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/memberid"
)

// not is a boolean field that is true if the key has the second of its two words.
type not struct{ *bool }

// share is a number of bytes, which is in KiB in zoo.cfg, or of percent. The other field is 0.
type share struct {
	bytes   *int64
	percent *int
}

// integerField is a field whose value is computed from that of the key.
type integerField struct {
	set func(int64)
	get func() int64
}

// units returns a field that holds the number of the key, times a unit.
func units[T ~int | ~int32 | ~int64](p *T, unit T) integerField {
	return integerField{func(n int64) { *p = T(n) * unit }, func() int64 { return int64(*p / unit) }}
}

// orNone is like units, for a field in which 0 means the default. In zoo.cfg 0 and negative numbers
// mean none, or no bound: for these the field holds the number less 1.
func orNone[T ~int | ~int64](p *T, unit T) integerField {
	return integerField{
		func(n int64) {
			if n <= 0 {
				n--
			}
			*p = T(n) * unit
		},
		func() int64 {
			n := int64(*p / unit)
			if n < 0 {
				n++
			}
			return n
		},
	}
}

// minusOneIsNone returns a field of milliseconds in which 0 means none, as -1 does in zoo.cfg. For
// 0 of zoo.cfg the field holds a nanosecond.
func minusOneIsNone(p *time.Duration) integerField {
	return integerField{
		func(n int64) {
			if *p = 0; n >= 0 {
				*p = max(1, time.Duration(n)*time.Millisecond)
			}
		},
		func() int64 {
			if *p == 0 {
				return -1
			}
			return p.Milliseconds()
		},
	}
}

// integer returns the field of the key; ok is false if the field holds no number.
func (k *key) integer() (_ integerField, ok bool) {
	switch f := k.field.(type) {
	case *int:
		return units(f, 1), true
	case *int32:
		return units(f, 1), true
	case *time.Duration:
		return units(f, time.Millisecond), true
	case *int64: // bytes of a value in KiB
		return units(f, 1<<10), true
	case integerField:
		return f, true
	}
	return integerField{}, false
}

// set stores a canonical value in the field.
func (k *key) set(v string) {
	if f, ok := k.integer(); ok {
		f.set(mustInt(v))
		return
	}
	switch f := k.field.(type) {
	case *string:
		*f = v
	case *[]string:
		*f = splitList(v)
	case *[]netip.Prefix:
		*f = parseNetworks(v)
	case *bool:
		*f = v == k.kind.words[0]
	case not:
		*f.bool = v != k.kind.words[0]
	case share:
		if number, ok := strings.CutSuffix(v, "%"); ok {
			*f.bytes, *f.percent = 0, int(mustInt(number))
		} else {
			*f.bytes, *f.percent = mustInt(v)<<10, 0
		}
	case *uint64: // the id of a server
		*f = memberid.Of(mustInt(v))
	case *float64:
		*f, _ = strconv.ParseFloat(v, 64) // v is canonical
	}
}

// get returns the canonical value of the field.
func (k *key) get() string {
	if f, ok := k.integer(); ok {
		return strconv.FormatInt(f.get(), 10)
	}
	word := func(first bool) string {
		if first {
			return k.kind.words[0]
		}
		return k.kind.words[1]
	}
	switch f := k.field.(type) {
	case *string:
		return *f
	case *[]string:
		return strings.Join(*f, ",")
	case *[]netip.Prefix:
		return formatNetworks(*f)
	case *bool:
		return word(*f)
	case not:
		return word(!*f.bool)
	case share:
		if *f.percent != 0 {
			return strconv.Itoa(*f.percent) + "%"
		}
		return strconv.FormatInt(*f.bytes>>10, 10)
	case *uint64:
		return memberid.Flag{ID: f}.String()
	case *float64:
		return strconv.FormatFloat(*f, 'g', -1, 64)
	}
	panic("config: field of unknown type for " + k.name)
}

func mustInt(canonical string) int64 {
	n, err := parseDecimal(canonical)
	if err != nil {
		panic("config: canonical number " + strconv.Quote(canonical) + " cannot be parsed")
	}
	return n
}
