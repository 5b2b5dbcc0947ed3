package proto

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// ErrInvalidPath is wrapped by every error of ValidatePath.
var ErrInvalidPath = errors.New("proto: invalid path")

// ValidatePath checks a path as ZooKeeper does for create (on the final path), setData, setACL and
// check. The error gives the reason and wraps ErrInvalidPath. Source: PathUtils.validatePath.
func ValidatePath(path string) error {
	switch {
	case path == "":
		return fmt.Errorf("%w: empty", ErrInvalidPath)
	case path[0] != '/':
		return fmt.Errorf("%w %q: must start with /", ErrInvalidPath, path)
	case len(path) == 1:
		return nil
	case path[len(path)-1] == '/':
		return fmt.Errorf("%w %q: must not end with /", ErrInvalidPath, path)
	}
	start := 1
	for i := 1; i <= len(path); {
		if i == len(path) || path[i] == '/' {
			switch path[start:i] {
			case "":
				return fmt.Errorf("%w %q: empty name at byte %d", ErrInvalidPath, path, start)
			case ".", "..":
				return fmt.Errorf("%w %q: relative name at byte %d", ErrInvalidPath, path, start)
			}
			i++
			start = i
			continue
		}
		if c := path[i]; c < utf8.RuneSelf {
			if c < 0x20 || c == 0x7f {
				return fmt.Errorf("%w %q: character U+%04X at byte %d", ErrInvalidPath, path, c, i)
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(path[i:])
		if r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0 {
			return fmt.Errorf("%w %q: character U+%04X at byte %d", ErrInvalidPath, path, r, i)
		}
		i += n
	}
	return nil
}

// ParentPath returns the path before the last slash, "/" for a child of the root. The path must
// contain a slash.
func ParentPath(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return "/"
}
