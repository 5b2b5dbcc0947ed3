package vfs

import "golang.org/x/sys/windows"

var fullErrors = []error{
	windows.ERROR_DISK_FULL, windows.ERROR_HANDLE_DISK_FULL, windows.ERROR_DISK_QUOTA_EXCEEDED,
}

func free(dir string) (bytes int64, known bool) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, false
	}
	var available, total, all uint64
	if err := windows.GetDiskFreeSpaceEx(name, &available, &total, &all); err != nil {
		return 0, false
	}
	return int64(available), true
}
