package bedrock

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// A source in very many pieces: joining them all would copy the text again for each.
func TestNoMoreOfASourceIsJoinedThanIsKept(t *testing.T) {
	var s source
	require.NoError(t, json.Unmarshal([]byte(`{"title":"A","sourceContent":[`+strings.Repeat(`{"text":"Sun"},`, 1000)+`{"text":"."}]}`), &s))
	got := s.citation(nil)
	require.Len(t, got.Text, agent.MaxCitedText+1)
	require.Equal(t, strings.Repeat("Sun", 169)+"Su…", got.Fit().Text)
}
