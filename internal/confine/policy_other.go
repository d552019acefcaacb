//go:build !linux

package confine

import "errors"

// This is what the kernel of this machine can hold programs with: only Linux can.
func This() Kernel { return Kernel{} }

func (landlock) prepare(*Policy, string) (*ready, error) { return &ready{}, nil }

func (bubblewrap) prepare(*Policy, string) (*ready, error) { return nil, errors.ErrUnsupported }
