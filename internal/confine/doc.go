// Package confine starts programs that are not trusted, and ends them with all that they
// started: the commands of tool/workspace and the programs of tool/mcp.
//
// On Linux the kernel holds a program and all that it starts. Landlock keeps it to the files
// of its [Policy]. A seccomp filter takes sockets, setuid and setgid bits, the user's keys in
// the kernel, io_uring, namespaces and the limits of other processes from it. It has no capabilities, no way to get any, no terminal,
// and limits on processes, memory and the size of files. All of this is done to a thread
// that starts the program and ends, so this process itself keeps its rights.
//
// Every program has a mark: a limit on real-time scheduling that no other has. Children
// inherit it, everybody may read it, and nothing that is held can change it. So what a
// program leaves behind is found, whatever it did with its group, session and environment,
// and after its process was killed by the next one ([EndOrphans]).
package confine
