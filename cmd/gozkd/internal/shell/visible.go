package shell

import (
	"fmt"
	"io"
	"os"
	"unicode"
	"unicode/utf8"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/shell/console"
)

// forEyes returns w, or what makes control characters visible before they get there if at is a terminal: what others wrote into a
// znode must not move the cursor, rename the window or type an answer. A pipe or a file gets every byte as it is.
func forEyes(w, at io.Writer) io.Writer {
	if f, ok := at.(*os.File); ok && console.IsTerminal(f, f) {
		return visible{w}
	}
	return w
}

// visible writes control characters, those that change the direction of text, and bytes that are no UTF-8 as Go and JSON would quote
// them: \u001b, \x9b. Each Write must be of whole characters. Newlines, also those of DOS, and tabs are what they are.
type visible struct{ to io.Writer }

func (v visible) Write(p []byte) (int, error) {
	if _, err := v.to.Write(quoteControls(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// quoteControls returns p itself if there is nothing to quote.
func quoteControls(p []byte) []byte {
	var out []byte
	from := 0 // what is before it is in out
	for i := 0; i < len(p); {
		r, n := utf8.DecodeRune(p[i:])
		quoted := ""
		switch {
		case r == utf8.RuneError && n == 1:
			quoted = fmt.Sprintf(`\x%02x`, p[i])
		case r == '\n' || r == '\t' || r == '\r' && i+1 < len(p) && p[i+1] == '\n':
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			quoted = fmt.Sprintf(`\u%04x`, r)
		}
		if quoted != "" {
			out = append(append(out, p[from:i]...), quoted...)
			from = i + n
		}
		i += n
	}
	if from == 0 {
		return p
	}
	return append(out, p[from:]...)
}
