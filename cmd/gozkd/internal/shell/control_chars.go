package shell

import (
	"fmt"
	"io"
	"os"
	"unicode"
	"unicode/utf8"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/shell/console"
)

// terminalSafe returns w if at is not a terminal. For a terminal it returns a writer to w that
// quotes control characters: data that others wrote to a znode must not move the cursor, set the
// title or make the terminal send an answer.
func terminalSafe(w, at io.Writer) io.Writer {
	if f, ok := at.(*os.File); ok && console.IsTerminal(f, f) {
		return controlQuoter{w}
	}
	return w
}

// controlQuoter quotes control characters, characters that change the direction of text, and bytes
// that are not UTF-8, as Go and JSON do: \u001b, \x9b. Newlines, CR LF and tabs pass. Each Write
// must consist of whole characters.
type controlQuoter struct{ to io.Writer }

func (v controlQuoter) Write(p []byte) (int, error) {
	if _, err := v.to.Write(quoteControls(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// quoteControls returns p itself if there is nothing to quote.
func quoteControls(p []byte) []byte {
	var out []byte
	from := 0 // everything before it is in out
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
