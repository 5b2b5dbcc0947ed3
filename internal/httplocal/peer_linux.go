package httplocal

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
)

// firstPerson is the first user id that Linux distributions give to people. Lower ones, but 0, are
// those of services.
const firstPerson = 1000

// fromService reports whether the socket with the address peer, which is connected to local,
// belongs to a user for services, such as www-data, that this process does not run as. It is false
// where the kernel does not tell. A socket that is gone counts as a service's.
func fromService(peer, local netip.AddrPort) bool {
	told := false
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(table)
		if err != nil {
			continue
		}
		told = true
		uid, found := owner(bufio.NewScanner(f), peer, local)
		_ = f.Close() // was only read
		if found {
			return uid != 0 && uid < firstPerson && uid != os.Getuid()
		}
	}
	return told
}

// owner finds the user id of a socket in a table of the kernel.
func owner(table *bufio.Scanner, socket, remote netip.AddrPort) (uid int, found bool) {
	port := fmt.Appendf(nil, ":%04X ", socket.Port()) // which few of the lines have
	for table.Scan() {
		if !bytes.Contains(table.Bytes(), port) {
			continue
		}
		// Number, local address, remote address, state, queues, timer, retransmissions, user id,
		// probes, inode. A socket that its process has closed has the inode 0, and root's id.
		columns := strings.Fields(table.Text())
		if len(columns) > 9 && columns[9] != "0" && endpoint(columns[1]) == socket && endpoint(columns[2]) == remote {
			uid, err := strconv.Atoi(columns[7])
			return uid, err == nil
		}
	}
	return 0, false
}

// endpoint reads an address as the kernel writes it: words of 32 bits in hexadecimal, in the byte
// order of the machine, and a port. It is invalid for other texts.
func endpoint(text string) netip.AddrPort {
	address, port, _ := strings.Cut(text, ":")
	ip, err := hex.DecodeString(address)
	number, portErr := strconv.ParseUint(port, 16, 16)
	if err != nil || portErr != nil || len(ip)%4 != 0 {
		return netip.AddrPort{}
	}
	for word := range slices.Chunk(ip, 4) {
		binary.NativeEndian.PutUint32(word, binary.BigEndian.Uint32(word))
	}
	a, _ := netip.AddrFromSlice(ip) // otherwise invalid
	return netip.AddrPortFrom(a.Unmap(), uint16(number))
}
