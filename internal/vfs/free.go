package vfs

// Free returns how many bytes a process without privileges can still write to the file system of dir, where the operating system says it.
func Free(dir string) (bytes int64, known bool) { return free(dir) }
