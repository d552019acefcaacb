package mcp

import (
	"log/slog"
	"sync"
	"time"
)

const (
	// maxLines is how many lines of one output of a server are logged in lineTime. The
	// rest is only counted.
	maxLines = 200
	lineTime = 10 * time.Second
)

// logLimiter limits how many lines are logged.
type logLimiter struct {
	log *slog.Logger

	mu    sync.Mutex
	began time.Time
	lines int // since then
}

// allows reports whether one more line may be logged. It logs when it begins to leave
// lines out, and later how many it left out.
func (s *logLimiter) allows() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.Sub(s.began) >= lineTime {
		if left := s.lines - maxLines; left > 0 {
			s.log.Warn("MCP server wrote too much, lines were left out", "lines", left)
		}
		s.began, s.lines = now, 0
	}
	s.lines++
	if s.lines == maxLines+1 {
		s.log.Warn("MCP server writes too much, leaving lines out", "for", lineTime-time.Since(s.began).Round(time.Second))
	}
	return s.lines <= maxLines
}
