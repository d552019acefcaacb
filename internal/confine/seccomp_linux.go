//go:build amd64 || arm64

package confine

import (
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Offsets in what a filter is shown of a system call. Both architectures put the low half
// of an argument first.
const (
	atNumber       = 0
	atArchitecture = 4
	atArguments    = 16
)

// otherCalls is the first number of system calls of another kind (x32), which amd64 has besides.
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

// links are the system calls by which a process gets to the network, and to programs that
// listen at a path, such as Docker: all sockets but pairs of them. Landlock's rights are
// not enough: it knows TCP alone, and of that not all ways to send.
// And those by which it shares memory and queues with programs elsewhere, which also stay
// when it has ended.
var links = []uint32{
	unix.SYS_SOCKET, unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
	unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
}

// refused are calls that nothing held may make: the ring by which the kernel would do what
// the filter does not see, the keys that the kernel keeps for this user, and other namespaces.
var refused = []uint32{unix.SYS_IO_URING_SETUP, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_SETNS}

// namespaces are the flags that give a process namespaces of its own. In a user namespace it
// would have every capability.
const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// unseen are calls whose flags or mode are in memory, where a filter can't look. Programs do
// without them, as on older kernels.
var unseen = []uint32{unix.SYS_OPENAT2, unix.SYS_CLONE3}

// schedulers are calls that change how the process is scheduled that their first argument
// names. Zero is the caller; any other may be the worker. Of prioritizers the first argument
// says what the second one names; the value of all is all processes of the user.
var (
	schedulers   = []uint32{unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR}
	prioritizers = []struct{ number, all uint32 }{{unix.SYS_SETPRIORITY, unix.PRIO_USER}, {unix.SYS_IOPRIO_SET, 3}}
)

// A modeCall gives a file a mode; an opener does if it makes the file. Both name the places of
// their arguments. An architecture has older ones besides.
type (
	modeCall struct{ number, mode uint32 }
	openCall struct{ number, flags, mode uint32 }
)

var (
	modeCalls = []modeCall{{unix.SYS_FCHMOD, 1}, {unix.SYS_FCHMODAT, 2}, {unix.SYS_FCHMODAT2, 2}, {unix.SYS_MKNODAT, 2}}
	openCalls = []openCall{{unix.SYS_OPENAT, 2, 3}}
)

// filter is the program of a seccomp filter. What it refuses gets EPERM, and so do all calls
// of another architecture, whose numbers mean something else.
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
	// A program that ends with this process can't change that: it is told that it did.
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
	list = append(list, on(unix.SYS_SETRLIMIT, low(0), unix.SockFilter{Code: equal, K: unix.RLIMIT_RTTIME, Jt: 1}, yes(), no(unix.EPERM))...)
	list = append(list, on(unix.SYS_PRLIMIT64, limiting()...)...)
	return append(list, yes())
}

// limiting allows a prlimit64 that changes nothing, since it has no new value, and one that
// changes a limit of the caller, except for its mark.
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

// pairs allows a pair of sockets that stay connected to each other. Others can send to every
// socket that has a path.
func pairs() []unix.SockFilter {
	return []unix.SockFilter{
		low(0), {Code: equal, K: unix.AF_UNIX, Jf: 4},
		low(1), {Code: and, K: 0xf}, {Code: equal, K: unix.SOCK_STREAM, Jt: 2}, {Code: equal, K: unix.SOCK_SEQPACKET, Jt: 1},
		no(unix.EPERM), yes(),
	}
}

// on does something at one system call. What it does has to end with an answer.
func on(number uint32, do ...unix.SockFilter) []unix.SockFilter {
	return append([]unix.SockFilter{{Code: equal, K: number, Jf: uint8(len(do))}}, do...)
}

// lacks allows a call if an argument has none of some bits.
func lacks(argument, bits uint32) []unix.SockFilter {
	return []unix.SockFilter{low(argument), {Code: anyOf, K: bits, Jf: 1}, no(unix.EPERM), yes()}
}

// own allows a call if the process that an argument names is the caller: zero.
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

// installFilter puts the filter on this thread, and on what it starts, for good.
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
