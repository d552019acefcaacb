package loop

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// A request is open until it is decided; then what became of it is known for a while, and
// the approver's token is spent.
func TestARequestIsDecidedOnce(t *testing.T) {
	r := Requests{}
	r.open(Request{Request: agent.Request{ID: "q-1", Call: &agent.RequestCall{Arguments: []byte(`{}`)}}})
	require.Empty(t, r.Open[0].Call.Arguments, "the call has them")
	r.close(Decided{ID: "q-1", How: "approved", Approver: "ana"})
	require.Equal(t, -1, r.find("q-1"))
	d, ok := r.decided("q-1")
	require.Equal(t, []any{true, "approved"}, []any{ok, d.How})
	require.Equal(t, []bool{true, false, false}, []bool{r.tokenUsed("q-1", "ana"), r.tokenUsed("q-1", "bob"), r.tokenUsed("q-1", "")})
	for n := range maxDecided {
		r.close(Decided{ID: fmt.Sprint("q-", n+2)})
	}
	_, ok = r.decided("q-1")
	require.False(t, ok)
	require.LessOrEqual(t, len(r.Decided), maxDecided)
}
