package vfs

import "golang.org/x/sys/windows"

var fullErrors = []error{
	windows.ERROR_DISK_FULL, windows.ERROR_HANDLE_DISK_FULL, windows.ERROR_DISK_QUOTA_EXCEEDED,
}

func spaceOf(dir string) (room Space, known bool) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return Space{}, false
	}
	var available, total, all uint64
	if err := windows.GetDiskFreeSpaceEx(name, &available, &total, &all); err != nil {
		return Space{}, false
	}
	return Space{Size: int64(total), Free: int64(available)}, true
}
