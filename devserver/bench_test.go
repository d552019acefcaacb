package devserver

import (
	"testing"
	"time"
)

// BenchmarkStart measures a start, as the time per operation, and a stop. The
// first start in a process is not among them: go test runs one operation before.
func BenchmarkStart(b *testing.B) {
	b.Run("memory", func(b *testing.B) {
		measureStart(b, func() *Options { return &Options{InMemory: true} })
	})
	b.Run("new-file", func(b *testing.B) {
		measureStart(b, func() *Options { return &Options{DataDir: b.TempDir()} })
	})
	b.Run("old-file", func(b *testing.B) {
		dir := b.TempDir()
		measureStart(b, func() *Options { return &Options{DataDir: dir} })
	})
}

func measureStart(b *testing.B, options func() *Options) {
	var stopping time.Duration
	for b.Loop() {
		s, err := Start(b.Context(), options())
		b.StopTimer()
		if err != nil {
			b.Fatal(err)
		}
		began := time.Now()
		s.Stop()
		stopping += time.Since(began)
		b.StartTimer()
	}
	b.ReportMetric(float64(stopping.Milliseconds())/float64(b.N), "ms-stop/op")
}
