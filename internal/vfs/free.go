package vfs

// Free returns how many bytes an unprivileged process can still write to the file system of dir. It
// is not known on every operating system.
func Free(dir string) (bytes int64, known bool) { return free(dir) }
