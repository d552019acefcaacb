//go:build amd64 || arm64

package workspace

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Offsets in what a filter is shown of a system call.
const (
	atNumber       = 0
	atArchitecture = 4
)

// unlinked are the system calls by which a process gets to the network, and to programs
// that listen at a path, such as Docker: all sockets but pairs of them, and the ring by
// which the kernel would make one without such a call. Landlock's rights are not enough: it
// knows TCP alone, and of that not all ways to send.
var unlinked = []uint32{unix.SYS_SOCKET, unix.SYS_IO_URING_SETUP}

// otherCalls is the first number of system calls of another kind (x32), which amd64 has besides.
const otherCalls = 0x40000000

// filter refuses system calls, with EPERM, and all of those of another architecture, whose
// numbers mean something else.
func filter(refused []uint32) []unix.SockFilter {
	architecture := uint32(unix.AUDIT_ARCH_X86_64)
	if runtime.GOARCH == "arm64" {
		architecture = unix.AUDIT_ARCH_AARCH64
	}
	const load, equal, atLeast = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	left := uint8(len(refused)) // instructions until the one that allows
	list := []unix.SockFilter{
		{Code: load, K: atArchitecture},
		{Code: equal, K: architecture, Jf: left + 3},
		{Code: load, K: atNumber},
		{Code: atLeast, K: otherCalls, Jt: left + 1},
	}
	for _, number := range refused {
		list = append(list, unix.SockFilter{Code: equal, K: number, Jt: left})
		left--
	}
	return append(list,
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)})
}

// unlink keeps this thread, and what it starts, from the network for good.
func unlink() error {
	list := filter(unlinked)
	program := unix.SockFprog{Len: uint16(len(list)), Filter: &list[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(list)
	if errno != 0 {
		return errno
	}
	return nil
}

// HoldsNetwork reports whether this machine's kernel can keep commands from the network.
func HoldsNetwork() bool {
	action := uint32(unix.SECCOMP_RET_ERRNO)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	return errno == 0
}
