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

// minusOneIsNone returns a field of ms where 0 means none, and a nanosecond 0 of zoo.cfg.
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

// textField is a field as text, which is a canonical value of its key.
type textField struct {
	set func(string)
	get func() string
}

// text returns the field of the key. It panics if there is none.
func (k *key) text() textField {
	integer := func(f integerField) textField {
		return textField{func(v string) { f.set(mustInt(v)) }, func() string { return strconv.FormatInt(f.get(), 10) }}
	}
	word := func(p *bool, first bool) textField { // first: what the first word means
		return textField{func(v string) { *p = (v == k.kind.words[0]) == first }, func() string {
			if *p == first {
				return k.kind.words[0]
			}
			return k.kind.words[1]
		}}
	}
	switch f := k.field.(type) {
	case *int:
		return integer(units(f, 1))
	case *int32:
		return integer(units(f, 1))
	case *time.Duration:
		return integer(units(f, time.Millisecond))
	case *int64: // bytes of a value in KiB
		return integer(units(f, 1<<10))
	case integerField:
		return integer(f)
	case *bool:
		return word(f, true)
	case not:
		return word(f.bool, false)
	case *string:
		return textField{func(v string) { *f = v }, func() string { return *f }}
	case *[]string:
		return textField{func(v string) { *f = splitList(v) }, func() string { return strings.Join(*f, ",") }}
	case *[]netip.Prefix:
		return textField{func(v string) { *f = parseNetworks(v) }, func() string { return formatNetworks(*f) }}
	case *uint64: // the id of a server
		return textField{func(v string) { *f = memberid.Of(mustInt(v)) }, memberid.Flag{ID: f}.String}
	case *float64:
		return textField{func(v string) { *f, _ = strconv.ParseFloat(v, 64) }, // v is canonical
			func() string { return strconv.FormatFloat(*f, 'g', -1, 64) }}
	case share:
		return textField{f.set, f.get}
	}
	panic("config: field of unknown type for " + k.name)
}

func (s share) set(v string) {
	if number, ok := strings.CutSuffix(v, "%"); ok {
		*s.bytes, *s.percent = 0, int(mustInt(number))
	} else {
		*s.bytes, *s.percent = mustInt(v)<<10, 0
	}
}

func (s share) get() string {
	if *s.percent != 0 {
		return strconv.Itoa(*s.percent) + "%"
	}
	return strconv.FormatInt(*s.bytes>>10, 10)
}

func mustInt(canonical string) int64 {
	n, err := parseDecimal(canonical)
	if err != nil {
		panic("config: canonical number " + strconv.Quote(canonical) + " cannot be parsed")
	}
	return n
}
