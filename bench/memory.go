package main

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// memory is what a process holds.
type memory struct {
	Heap       uint64 // live bytes
	Goroutines int
	RSS        uint64 // bytes from the system; zero if unknown
	Peak       uint64 // the most bytes from the system so far; zero if unknown
}

// held collects garbage and measures what is left.
func held() memory {
	runtime.GC()
	runtime.GC() // what finalizers of the first one released
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	h := memory{Heap: m.HeapAlloc, Goroutines: runtime.NumGoroutine()}
	if data, err := os.ReadFile("/proc/self/statm"); err == nil {
		pages, _ := strconv.ParseUint(strings.Fields(string(data))[1], 10, 64) // the kernel writes a number
		h.RSS = pages * uint64(os.Getpagesize())
	}
	if data, err := os.ReadFile("/proc/self/status"); err == nil {
		_, after, _ := strings.Cut(string(data), "VmHWM:")
		kB, _ := strconv.ParseUint(strings.Fields(after + " 0")[0], 10, 64) // zero if the kernel says none
		h.Peak = kB << 10
	}
	return h
}

// readMemory parses a recorder's line.
func readMemory(line []string) (m memory) {
	m.Heap, _ = strconv.ParseUint(line[0], 10, 64)
	m.Goroutines, _ = strconv.Atoi(line[1])
	m.RSS, _ = strconv.ParseUint(line[2], 10, 64)
	m.Peak, _ = strconv.ParseUint(line[3], 10, 64)
	return m
}
