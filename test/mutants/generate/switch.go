package main

// switchFile is the name of the file that is added to a rewritten package.
const switchFile = "gozkd_mutant_switch.go"

// switchText is the content of switchFile, for the name of the package and the number of mutants.
// What is reached is noted in a file in shared memory, so that it survives any end of the process.
const switchText = `package %s

import (
	"cmp"
	"os"
	"strconv"
	"syscall"
)

var mutant, mutReached = mutSwitch()

func mutSwitch() (int, []byte) {
	n, err := strconv.Atoi(os.Getenv("GOZKD_MUTANT"))
	if err != nil {
		n = -1
	}
	reached := make([]byte, %d)
	if f, err := os.OpenFile(os.Getenv("GOZKD_MUTANTS_REACHED"), os.O_RDWR, 0); err == nil {
		reached, err = syscall.Mmap(int(f.Fd()), 0, len(reached), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
		if err != nil {
			panic(err)
		}
		f.Close()
	}
	return n, reached
}

func mut(id int) bool {
	mutReached[id] = 1
	return id == mutant
}

func mutAdd[T ~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr](id, by int, v T) T {
	if mut(id) {
		return v + T(by)
	}
	return v
}

func mut_min[T cmp.Ordered](id int, v ...T) T { return mutExtreme(!mut(id), v) }

func mut_max[T cmp.Ordered](id int, v ...T) T { return mutExtreme(mut(id), v) }

func mutExtreme[T cmp.Ordered](least bool, v []T) T {
	e := v[0]
	for _, x := range v {
		if x < e == least {
			e = x
		}
	}
	return e
}
`
