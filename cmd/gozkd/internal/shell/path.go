package shell

import (
	"fmt"
	"unicode/utf16"
)

// checkPath returns a usageError in the words of ZooKeeper's client if path is not valid. Most
// commands need not call it: the client refuses the path, and dispatch calls checkPath then.
// Source: PathUtils.validatePath.
func checkPath(path string) error {
	switch {
	case path == "":
		return usageError("Path length must be > 0")
	case path[0] != '/':
		return usageError("Path must start with / character")
	case path == "/":
		return nil
	case path[len(path)-1] == '/':
		return usageError("Path must not end with / character")
	}
	if reason := invalidInPath(utf16.Encode([]rune(path))); reason != "" {
		return usageError(fmt.Sprintf(`Invalid path string "%s" caused by %s`, path, reason))
	}
	return nil
}

// invalidInPath names the first invalid character and its position in UTF-16 units, or is "".
func invalidInPath(units []uint16) string {
	last := uint16('/')
	for i := 1; i < len(units); i++ {
		c := units[i]
		atEnd := i+1 == len(units) || units[i+1] == '/'
		switch {
		case c == 0:
			return fmt.Sprintf("null character not allowed @%d", i)
		case c == '/' && last == '/':
			return fmt.Sprintf("empty node name specified @%d", i)
		case c == '.' && last == '.' && i >= 2 && units[i-2] == '/' && atEnd, c == '.' && last == '/' && atEnd:
			return fmt.Sprintf("relative paths not allowed @%d", i)
		case c <= 0x1F, c >= 0x7F && c <= 0x9F, c >= 0xD800 && c <= 0xF8FF, c >= 0xFFF0:
			return fmt.Sprintf("invalid character @%d", i)
		}
		last = c
	}
	return ""
}
