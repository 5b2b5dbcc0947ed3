package shell

import (
	"fmt"
	"regexp"
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
	found := invalidInPath.FindStringSubmatchIndex(path)
	for i, reason := range []string{
		"null character not allowed", "empty node name specified", "relative paths not allowed", "invalid character",
	} {
		if found != nil && found[2*i+2] >= 0 {
			at := len(utf16.Encode([]rune(path[:found[2*i+2]])))
			return usageError(fmt.Sprintf(`Invalid path string "%s" caused by %s @%d`, path, reason, at))
		}
	}
	return nil
}

// invalidInPath has a group for each reason, which matches the character that ZooKeeper names.
var invalidInPath = regexp.MustCompile(`(\x00)|/(/)|/\.?(\.)(?:/|$)|` +
	`([\x01-\x1F\x7F-\x9F\x{D800}-\x{F8FF}\x{FFF0}-\x{10FFFF}])`)
