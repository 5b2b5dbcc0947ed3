package shell

import (
	"fmt"
	"strings"
)

// hexDump returns data in lines of 16 bytes, in the frame that netty's ByteBufUtil.prettyHexDump draws, without the last
// newline. No data is no frame.
func hexDump(data []byte) string {
	if len(data) == 0 {
		return ""
	}
	const rule = "+--------+-------------------------------------------------+----------------+"
	var b strings.Builder
	b.WriteString("         +-------------------------------------------------+\n" +
		"         |  0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f |\n" + rule)
	for at := 0; at < len(data); at += 16 {
		row := data[at:min(at+16, len(data))]
		fmt.Fprintf(&b, "\n|%08x|%-48s |", at, fmt.Sprintf(" % x", row))
		for _, c := range row {
			if c <= 0x1F || c >= 0x7F {
				c = '.'
			}
			b.WriteByte(c)
		}
		b.WriteString(strings.Repeat(" ", 16-len(row)) + "|")
	}
	b.WriteString("\n" + rule)
	return b.String()
}
