// Package confine starts programs that are not trusted, and ends them with all that they
// started: the commands of tool/workspace and the programs of tool/mcp.
//
// On Linux a [Sandbox] holds a program and all that it starts to the files of its [Policy].
// The one is Landlock of the kernel; the other is the command bwrap, which makes namespaces in
// which nothing else exists. In both a seccomp filter takes sockets, setuid and setgid bits,
// the user's keys in the kernel, io_uring, namespaces and the limits of other processes from
// it. It has no capabilities, no way to get any and no terminal, and limits on processes and
// the size of files; there is none on memory. A thread gives up these rights and starts the
// program, so this process itself keeps them. It lives as long as the program, which the
// kernel ends with it.
//
// Every program has a mark: a limit on real-time scheduling that no other has. Children
// inherit it, everybody may read it, and nothing that is held can change it. So what a
// program leaves behind is found, whatever it did with its group, session and environment,
// and after its process was killed by the next one ([EndOrphans]).
package confine
