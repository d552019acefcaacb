package main

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// memory is what a process holds.
type memory struct {
	Heap       uint64 // bytes that live
	Goroutines int
	RSS        uint64 // bytes that the system gave it; zero if the system does not tell
}

// held takes out the garbage and looks what is left.
func held() memory {
	runtime.GC()
	runtime.GC() // what the first one finalised
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	h := memory{Heap: m.HeapAlloc, Goroutines: runtime.NumGoroutine()}
	if data, err := os.ReadFile("/proc/self/statm"); err == nil {
		pages, _ := strconv.ParseUint(strings.Fields(string(data))[1], 10, 64) // the kernel writes a number
		h.RSS = pages * uint64(os.Getpagesize())
	}
	return h
}

// readMemory reads what a recorder wrote.
func readMemory(line []string) (m memory) {
	m.Heap, _ = strconv.ParseUint(line[0], 10, 64)
	m.Goroutines, _ = strconv.Atoi(line[1])
	m.RSS, _ = strconv.ParseUint(line[2], 10, 64)
	return m
}
