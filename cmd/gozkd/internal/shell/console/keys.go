package console

import "bytes"

// Keys and escape sequences of the editor.
const (
	keyInterrupt  = 3
	keyLineEnd    = 5
	keyDeleteWord = 0x17
	escape        = 0x1b

	seqHome       = "\x1b[H"
	seqEnd        = "\x1b[F"
	seqWordLeft   = "\x1b[1;3D"
	seqWordRight  = "\x1b[1;3C"
	seqPasteBegin = "\x1b[200~"
	seqPasteEnd   = "\x1b[201~"
)

// keys translates the terminal's input for the editor, by line. The zero value is ready.
type keys struct {
	raw         []byte // input that is not translated yet
	ready       []byte // input for the editor
	pasting     bool   // raw begins within a paste
	interrupted bool   // Ctrl-C follows ready
	begun       bool   // the editor has received input of this line
}

// add appends input from the terminal. data is not retained.
func (k *keys) add(data []byte) { k.raw = append(k.raw, data...) }

// take returns input of at most one line, or 0 bytes if more input must be added. After the end of
// a line, the next call begins the next line, for another editor. ErrInterrupted follows Ctrl-C.
func (k *keys) take(p []byte) (int, error) {
	if len(k.ready) == 0 && !k.interrupted {
		k.translate()
	}
	n := copy(p, k.ready)
	k.ready = k.ready[n:]
	if k.interrupted && len(k.ready) == 0 {
		k.interrupted, k.begun = false, false
		return n, ErrInterrupted
	}
	return n, nil
}

// translate moves input from raw to ready, up to the end of a line.
func (k *keys) translate() {
	if !k.begun && len(k.raw) > 0 {
		k.begun = true
		if k.pasting { // the editor of this line has not seen the beginning of the paste
			k.ready = append(k.ready, seqPasteBegin...)
		}
	}
	for len(k.raw) > 0 {
		b := k.raw[0]
		if b == escape {
			n, words := sequence(k.raw)
			if n == 0 {
				return // incomplete
			}
			if k.pasting && words != seqPasteEnd {
				words = "" // ignore escape sequences in pasted text
			}
			switch words {
			case seqPasteBegin:
				k.pasting = true
			case seqPasteEnd:
				k.pasting = false
			}
			k.raw, k.ready = k.raw[n:], append(k.ready, words...)
			continue
		}
		k.raw = k.raw[1:]
		switch {
		case b == '\r' || b == '\n':
			if b == '\r' && len(k.raw) > 0 && k.raw[0] == '\n' {
				k.raw = k.raw[1:]
			}
			k.ready, k.begun = append(k.ready, '\r'), false
			return
		case k.pasting && b == '\t':
			k.ready = append(k.ready, ' ')
		case k.pasting && (b < ' ' || b == 0x7f): // control characters in pasted text are not keys
		case b == keyInterrupt:
			k.ready, k.interrupted = append(k.ready, keyLineEnd), true // so that later output starts after the line
			return
		default:
			k.ready = append(k.ready, b)
		}
	}
}

// sequence returns the length of the escape sequence at the beginning of b and its equivalent for
// the editor, or "". The length of an incomplete sequence is 0.
func sequence(b []byte) (int, string) {
	if len(b) < 2 {
		return 0, ""
	}
	switch b[1] {
	case '[':
		end := bytes.IndexFunc(b[2:], func(r rune) bool { return r >= '@' })
		if end < 0 {
			return 0, ""
		}
		n := 2 + end + 1
		return n, control(string(b[2:n]))
	case 'O': // in application mode
		if len(b) < 3 {
			return 0, ""
		}
		return 3, control(string(b[2:3]))
	case 'b':
		return 2, seqWordLeft
	case 'f':
		return 2, seqWordRight
	case 8, 0x7f:
		return 2, string(rune(keyDeleteWord))
	}
	return 1, "" // the key after Escape counts
}

// control translates a sequence that begins with ESC [.
func control(words string) string {
	switch words {
	case "A", "B", "C", "D", "3~", "200~", "201~":
		return "\x1b[" + words
	case "H", "1~", "7~":
		return seqHome
	case "F", "4~", "8~":
		return seqEnd
	case "1;3C", "1;5C":
		return seqWordRight
	case "1;3D", "1;5D":
		return seqWordLeft
	}
	return ""
}
