package vfs

// Free returns how many bytes an unprivileged process can still write to the file system of dir. On
// some operating systems the number is not known.
func Free(dir string) (bytes int64, known bool) { return free(dir) }
