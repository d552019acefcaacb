// Package confine starts programs that are not trusted, and ends them with all that they
// started: the commands of tool/workspace and the programs of tool/mcp.
//
// On Linux a [Sandbox] confines a program, and all that it starts, to the files of its
// [Policy]. One sandbox is the kernel's Landlock. The other is the command bwrap, which
// makes namespaces that contain nothing else. In both, a seccomp filter refuses sockets,
// setuid and setgid bits, the user's keys in the kernel, io_uring, namespaces, and the
// limits of other processes. A program has no capabilities, no way to get any, and no
// terminal. It has limits on processes and file size, and none on memory. A thread drops
// these rights and starts the program, so this process keeps them. The thread lives as
// long as the program; the kernel ends the program with it.
//
// Every program has a mark: a limit on real-time scheduling that no other program has.
// Children inherit it, everybody may read it, and nothing confined can change it. So what
// a program leaves behind is found, whatever it did with its group, session and
// environment. If this process is killed, the next one finds it ([EndOrphans]).
package confine
