// Package worktree copies a directory's files into a git repository of the runtime's own, and merges
// such copies.
//
// Models write in the copied directories, and may write a .git there. So git never looks at these
// directories: this package gets their files from a [Files], and a repository has only what the runtime
// has put into it. Its configuration is written here. It names no hook, filter, monitor, merge driver,
// helper, remote or other repository. Bytes are copied as they are: no attribute converts them.
package worktree
