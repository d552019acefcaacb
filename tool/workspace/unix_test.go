//go:build unix

package workspace_test

import "syscall"

func mkfifo(path string) error { return syscall.Mkfifo(path, 0o644) }
