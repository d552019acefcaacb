package standin

import (
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// endlessly is how many bytes of an endless answer an adapter may read. All that the
// adapter keeps is memory of the worker.
const endlessly = 48 << 20

// Endless checks that adapters stop reading answers that never end. Each of pieces is one
// event. The adapter keeps something of each event and emits nothing.
func Endless(t *testing.T, make Making, req *model.Request, key, begin string, pieces map[string]string) {
	t.Helper()
	for name, piece := range pieces {
		var sent atomic.Int64
		s := Listen(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("content-type", "text/event-stream")
			_, err := io.WriteString(w, begin)
			for err == nil {
				var n int
				n, err = io.WriteString(w, piece)
				sent.Add(int64(n))
			}
		})
		fault := s.Fails(t, make(s.URL, nil), req, key)
		if fault.Code != agent.CodeBadOutput || fault.Retryable {
			t.Errorf("%s: got %v, want %s", name, fault, agent.CodeBadOutput)
		}
		if n := sent.Load(); n > endlessly {
			t.Errorf("%s: %d bytes were read, want at most %d", name, n, endlessly)
		}
	}
}
