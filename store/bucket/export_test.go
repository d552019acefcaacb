package bucket

import "time"

// Later makes a store believe that it is later than it is.
func (s *Store) Later(by time.Duration) {
	s.now = func() time.Time { return time.Now().Add(by) }
}
