package jute

import "encoding/binary"

// AppendBool appends one byte, 1 or 0.
func AppendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// AppendInt appends a 4-byte int.
func AppendInt(b []byte, v int32) []byte { return binary.BigEndian.AppendUint32(b, uint32(v)) }

// AppendLong appends an 8-byte long.
func AppendLong(b []byte, v int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(v)) }

// AppendBuffer appends length and bytes; nil is null (length -1), an empty slice has length 0.
func AppendBuffer(b, v []byte) []byte {
	if v == nil {
		return AppendInt(b, -1)
	}
	return append(AppendInt(b, int32(len(v))), v...)
}

// AppendString appends length and UTF-8 bytes. It cannot write null: see [AppendNullString].
func AppendString(b []byte, v string) []byte {
	return append(AppendInt(b, int32(len(v))), v...)
}

// AppendNullString appends a string that may be null.
func AppendNullString(b []byte, v *string) []byte {
	if v == nil {
		return AppendInt(b, -1)
	}
	return AppendString(b, *v)
}

// AppendStrings appends a vector of strings; nil is null (count -1).
func AppendStrings(b []byte, v []string) []byte {
	if v == nil {
		return AppendInt(b, -1)
	}
	b = AppendInt(b, int32(len(v)))
	for _, s := range v {
		b = AppendString(b, s)
	}
	return b
}
