package exchange

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/scanner"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// A request in words is the name or number of its operation and its fields in the order of
// requestBodies:
//
//	create2 "/a" "data" open 0
//	setACL "/a" [31 "digest" "bob:hash" 1 "world" "anyone"] -1
//	setWatches 0 ["/a" "/b"] [] null
//	multi { check "/a" 3 ; delete "/b" -1 }
//
// Strings and buffers are quoted as in Go; open is the ACL with which anyone may do anything. After
// the fields, less N leaves out the last N bytes of the body and plus "BYTES" adds some. raw
// "BYTES" in place of the fields is a body that is not such a record.

// errWords is wrapped by the errors of ParseRequest.
var errWords = errors.New("not a request in words")

// words returns the request in words.
func (r *Request) words() string {
	f := requestReader{fieldReader{d: jute.NewDecoder(r.Body)}}
	f.body(r.Op)
	text, end := opInWords(r.Op)+fieldsInWords(r.Op, f.fields), f.d.Offset()
	if _, again, err := ParseRequest(text); f.d.Err() != nil || err != nil || string(again) != string(r.Body[:end]) {
		return opInWords(r.Op) + " raw " + strconv.Quote(string(r.Body)) // the words would not stand for these bytes
	}
	if end < len(r.Body) {
		text += " plus " + strconv.Quote(string(r.Body[end:]))
	}
	return text
}

func opInWords(op proto.OpCode) string {
	if name := op.Info().Name; name != "" {
		return name
	}
	return strconv.Itoa(int(op))
}

// fieldsInWords returns the fields of a request in words.
func fieldsInWords(op proto.OpCode, fields []Field) (text string) {
	if op == proto.OpMulti || op == proto.OpMultiRead {
		text = " {"
	}
	for i := 0; i < len(fields); i++ {
		f := &fields[i]
		word := cmp.Or(f.S, strconv.FormatInt(f.N, 10))
		switch {
		case i+1 < len(fields) && strings.HasSuffix(fields[i+1].Name, ".done"): // a header in a multi
			switch {
			case fields[i+1].S == "true":
				word = "}"
			case i > 0:
				word = "; " + opInWords(proto.OpCode(f.N))
			default:
				word = opInWords(proto.OpCode(f.N))
			}
			i += 2
		case strings.HasSuffix(f.Name, "acls") && f.N < 0:
			word = "null"
		case strings.HasSuffix(f.Name, "acls"):
			var parts []string
			for _, part := range fields[i+1 : min(i+1+3*int(f.N), len(fields))] {
				parts = append(parts, cmp.Or(part.S, strconv.FormatInt(part.N, 10)))
			}
			i += len(parts)
			if word = "[" + strings.Join(parts, " ") + "]"; word == `[31 "world" "anyone"]` {
				word = "open"
			}
		}
		text += " " + word
	}
	return text
}

// ParseRequest returns the operation and the body of a request in words, as at the top of words.go.
func ParseRequest(text string) (op proto.OpCode, body []byte, err error) {
	p := &wordParser{}
	p.s.Init(strings.NewReader(text))
	p.s.Mode = scanner.ScanIdents | scanner.ScanInts | scanner.ScanStrings
	p.s.Error = func(_ *scanner.Scanner, what string) { p.fail(what) }
	p.next()
	op, body = p.request(nil)
	for p.err == nil && p.tok != scanner.EOF {
		switch word := p.take(); word {
		case "less":
			n := p.int(32)
			body = body[:max(0, len(body)-int(n))]
		case "plus":
			body = append(body, p.quoted()...)
		default:
			p.fail("unexpected " + word)
		}
	}
	if p.err != nil {
		return 0, nil, fmt.Errorf("%w: %s: %w", errWords, text, p.err)
	}
	return op, body, nil
}

// wordParser is the state of ParseRequest.
type wordParser struct {
	s   scanner.Scanner
	tok rune // the next token
	err error
}

func (p *wordParser) next() { p.tok = p.s.Scan() }

func (p *wordParser) fail(what string) {
	if p.err == nil {
		p.err = fmt.Errorf("column %d: %s", p.s.Column, what)
	}
}

// take returns the next token.
func (p *wordParser) take() string {
	text := p.s.TokenText()
	if p.tok == scanner.EOF {
		p.fail("the request ends too early")
	}
	p.next()
	return text
}

// skip skips a token if it is the next.
func (p *wordParser) skip(text string) bool {
	if p.tok == scanner.EOF || p.s.TokenText() != text {
		return false
	}
	p.next()
	return true
}

func (p *wordParser) int(bits int) int64 {
	sign := ""
	if p.skip("-") {
		sign = "-"
	}
	n, err := strconv.ParseInt(sign+p.take(), 10, bits)
	if err != nil {
		p.fail(err.Error())
	}
	return n
}

func (p *wordParser) quoted() string {
	s, err := strconv.Unquote(p.take())
	if err != nil {
		p.fail("want a quoted string")
	}
	return s
}

func (p *wordParser) nullString(b []byte) []byte {
	if p.skip("null") {
		return jute.AppendInt(b, -1)
	}
	return jute.AppendString(b, p.quoted())
}

func (p *wordParser) op() proto.OpCode {
	if p.tok != scanner.Ident {
		return proto.OpCode(p.int(32))
	}
	name := p.take()
	for info := range proto.Ops() {
		if info.Name == name {
			return info.Code
		}
	}
	p.fail("no operation is called " + name)
	return 0
}

// request appends the body of a request or of an operation of a multi.
func (p *wordParser) request(b []byte) (proto.OpCode, []byte) {
	op := p.op()
	switch {
	case p.skip("raw"):
		return op, append(b, p.quoted()...)
	case op != proto.OpMulti && op != proto.OpMultiRead:
		return op, p.fields(b, requestBodies[op])
	case !p.skip("{"):
		p.fail("want { or raw")
	}
	for p.err == nil && !p.skip("}") {
		inner, body := p.request(nil)
		b = append(proto.AppendMultiHeader(b, inner, false, -1), body...)
		if p.s.TokenText() != "}" && !p.skip(";") {
			p.fail("want ; or }")
		}
	}
	return op, proto.AppendMultiHeader(b, -1, true, -1)
}

func (p *wordParser) fields(b []byte, fields string) []byte {
	for f := range strings.FieldsSeq(fields) {
		typ, _, _ := strings.Cut(f, ":")
		switch typ {
		case "int":
			b = jute.AppendInt(b, int32(p.int(32)))
		case "long":
			b = jute.AppendLong(b, p.int(64))
		case "bool":
			b = jute.AppendBool(b, p.take() == "true")
		case "list":
			b = p.list(b, p.nullString)
		case "acls":
			entry := func(b []byte) []byte {
				return p.nullString(p.nullString(jute.AppendInt(b, int32(p.int(32)))))
			}
			if p.skip("open") {
				b = proto.AppendACLs(b, proto.OpenACL())
			} else {
				b = p.list(b, entry)
			}
		default:
			b = p.nullString(b)
		}
	}
	return b
}

func (p *wordParser) list(b []byte, item func([]byte) []byte) []byte {
	if p.skip("null") {
		return jute.AppendInt(b, -1)
	}
	if !p.skip("[") {
		p.fail("want [ or null")
	}
	n, items := 0, []byte(nil)
	for ; p.err == nil && !p.skip("]"); n++ {
		items = item(items)
	}
	return append(jute.AppendInt(b, int32(n)), items...)
}
