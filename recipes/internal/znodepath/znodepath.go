// Package znodepath joins and splits the paths of znodes. Unlike in package path, nothing is
// cleaned: an invalid path must reach the server, which refuses that path.
package znodepath

import "strings"

// Join returns the path of the child of parent that is called name.
func Join(parent, name string) string {
	if parent == "/" {
		return "/" + name
	}
	return parent + "/" + name
}

// Base returns the last part of path, which is the znode's name.
func Base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// ValidName reports whether a znode can be called name.
func ValidName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.Contains(name, "/")
}
