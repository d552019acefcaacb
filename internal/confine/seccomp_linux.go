//go:build amd64 || arm64

package confine

import (
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Offsets in the data of a system call that a filter reads. Both architectures store the
// low half of an argument first.
const (
	atNumber       = 0
	atArchitecture = 4
	atArguments    = 16
)

// otherCalls is the first number of amd64's second set of system calls (x32).
const otherCalls = 0x40000000

const (
	load    = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	equal   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	atLeast = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	anyOf   = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	and     = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
	answer  = unix.BPF_RET | unix.BPF_K
)

const (
	// idBits are the bits of a mode that let a program run with the rights of its file's
	// owner or group.
	idBits = unix.S_ISUID | unix.S_ISGID
	// making are the flags of an open that give a new file its mode.
	making = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY
)

// links are the system calls that lead to the network, and to programs that listen at a
// path, such as Docker: all sockets but pairs of them. Landlock is not enough: it knows
// only TCP, and not all ways to send on it. The list also has the calls that share memory
// and queues with other programs, which outlive the program.
var links = []uint32{
	unix.SYS_SOCKET, unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
	unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
}

// refused are calls that nothing confined may make. io_uring would do in the kernel what
// the filter does not see. The others use the user's keys in the kernel, and other
// namespaces.
var refused = []uint32{unix.SYS_IO_URING_SETUP, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_SETNS}

// namespaces are the flags that give a process its own namespaces. In a user namespace it
// would have every capability.
const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// unseen are calls whose flags or mode are in memory, where a filter can't look. Programs
// fall back to others, as they do on older kernels.
var unseen = []uint32{unix.SYS_OPENAT2, unix.SYS_CLONE3}

// schedulers change the scheduling of the process in their first argument. Zero is the
// caller; any other might be the worker. For prioritizers the first argument is the kind
// of the second; all is the kind for all processes of the user.
var (
	schedulers   = []uint32{unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR}
	prioritizers = []struct{ number, all uint32 }{{unix.SYS_SETPRIORITY, unix.PRIO_USER}, {unix.SYS_IOPRIO_SET, 3}}
)

// modeCall is a system call that gives a file a mode. openCall is one that does so if it
// creates the file. Both have the positions of the arguments. An architecture has older
// calls, too.
type (
	modeCall struct{ number, mode uint32 }
	openCall struct{ number, flags, mode uint32 }
)

var (
	modeCalls = []modeCall{{unix.SYS_FCHMOD, 1}, {unix.SYS_FCHMODAT, 2}, {unix.SYS_FCHMODAT2, 2}, {unix.SYS_MKNODAT, 2}}
	openCalls = []openCall{{unix.SYS_OPENAT, 2, 3}}
)

// filter returns the program of a seccomp filter. A refused call gets EPERM. So do all
// calls of another architecture, whose numbers mean something else.
func filter(network bool) []unix.SockFilter {
	architecture := uint32(unix.AUDIT_ARCH_X86_64)
	if runtime.GOARCH == "arm64" {
		architecture = unix.AUDIT_ARCH_AARCH64
	}
	list := []unix.SockFilter{
		{Code: load, K: atArchitecture},
		{Code: equal, K: architecture, Jt: 1},
		no(unix.EPERM),
		{Code: load, K: atNumber},
		{Code: atLeast, K: otherCalls, Jf: 1},
		no(unix.EPERM),
	}
	// Landlock could only refuse TCP. Here all sockets are refused, except connected
	// pairs.
	calls := refused
	if !network {
		calls = slices.Concat(refused, links)
		list = append(list, on(unix.SYS_SOCKETPAIR, pairs()...)...)
	}
	for _, number := range calls {
		list = append(list, on(number, no(unix.EPERM))...)
	}
	for _, number := range unseen {
		list = append(list, on(number, no(unix.ENOSYS))...)
	}
	for _, number := range []uint32{unix.SYS_CLONE, unix.SYS_UNSHARE} {
		list = append(list, on(number, lacks(0, namespaces)...)...)
	}
	for _, number := range schedulers {
		list = append(list, on(number, own(0)...)...)
	}
	for _, c := range prioritizers {
		list = append(list, on(c.number, append([]unix.SockFilter{low(0), {Code: equal, K: c.all, Jf: 1}, no(unix.EPERM)}, own(1)...)...)...)
	}
	// A program could ask not to end with this process. It is told that it succeeded.
	list = append(list, on(unix.SYS_PRCTL, low(0), unix.SockFilter{Code: equal, K: unix.PR_SET_PDEATHSIG, Jt: 1}, yes(),
		low(1), unix.SockFilter{Code: equal, K: uint32(unix.SIGKILL), Jf: 1}, yes(), no(0))...)
	for _, c := range slices.Concat(modeCalls, olderModeCalls) {
		list = append(list, on(c.number, lacks(c.mode, idBits)...)...)
	}
	for _, c := range slices.Concat(openCalls, olderOpenCalls) {
		list = append(list, on(c.number, append([]unix.SockFilter{
			low(c.flags), {Code: anyOf, K: uint32(making), Jt: 1}, yes(),
		}, lacks(c.mode, idBits)...)...)...)
	}
	// This limit is the mark.
	list = append(list, on(unix.SYS_SETRLIMIT, low(0), unix.SockFilter{Code: equal, K: unix.RLIMIT_RTTIME, Jt: 1}, yes(), no(unix.EPERM))...)
	list = append(list, on(unix.SYS_PRLIMIT64, limiting()...)...)
	return append(list, yes())
}

// limiting allows a prlimit64 without a new value, which changes nothing. It also allows
// one that changes a limit of the caller, except for its mark.
func limiting() []unix.SockFilter {
	return []unix.SockFilter{
		low(2), {Code: equal, K: 0, Jf: 3},
		high(2), {Code: equal, K: 0, Jf: 1},
		yes(),
		low(0), {Code: equal, K: 0, Jf: 3},
		low(1), {Code: equal, K: unix.RLIMIT_RTTIME, Jt: 1},
		yes(),
		no(unix.EPERM),
	}
}

// pairs allows sockets that are connected only to each other. To a datagram socket others
// could send.
func pairs() []unix.SockFilter {
	return []unix.SockFilter{
		low(0), {Code: equal, K: unix.AF_UNIX, Jf: 4},
		low(1), {Code: and, K: 0xf}, {Code: equal, K: unix.SOCK_STREAM, Jt: 2}, {Code: equal, K: unix.SOCK_SEQPACKET, Jt: 1},
		no(unix.EPERM), yes(),
	}
}

// on appends the filter for one system call. do must end with an answer.
func on(number uint32, do ...unix.SockFilter) []unix.SockFilter {
	return append([]unix.SockFilter{{Code: equal, K: number, Jf: uint8(len(do))}}, do...)
}

// lacks allows a call if an argument has none of some bits.
func lacks(argument, bits uint32) []unix.SockFilter {
	return []unix.SockFilter{low(argument), {Code: anyOf, K: bits, Jf: 1}, no(unix.EPERM), yes()}
}

// own allows a call if an argument names the caller as the process: zero.
func own(argument uint32) []unix.SockFilter {
	return []unix.SockFilter{low(argument), {Code: equal, K: 0, Jt: 1}, no(unix.EPERM), yes()}
}

func low(argument uint32) unix.SockFilter {
	return unix.SockFilter{Code: load, K: atArguments + 8*argument}
}

func high(argument uint32) unix.SockFilter {
	return unix.SockFilter{Code: load, K: atArguments + 8*argument + 4}
}

func yes() unix.SockFilter { return unix.SockFilter{Code: answer, K: unix.SECCOMP_RET_ALLOW} }

func no(err unix.Errno) unix.SockFilter {
	return unix.SockFilter{Code: answer, K: unix.SECCOMP_RET_ERRNO | uint32(err)}
}

// installFilter installs the filter on this thread, and on all that it starts, for good.
func installFilter(network bool) error {
	list := filter(network)
	program := unix.SockFprog{Len: uint16(len(list)), Filter: &list[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(list)
	if errno != 0 {
		return errno
	}
	return nil
}

func hasSeccomp() bool {
	action := uint32(unix.SECCOMP_RET_ERRNO)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	return errno == 0
}
