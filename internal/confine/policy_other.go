//go:build !linux

package confine

import "errors"

// HostKernel returns what the kernel of this machine can confine programs with: nothing, except
// on Linux.
func HostKernel() Kernel { return Kernel{} }

func (landlock) prepare(*Policy, string) (*ready, error) { return &ready{}, nil }

func (bubblewrap) prepare(*Policy, string) (*ready, error) { return nil, errors.ErrUnsupported }
