package w3ctrace_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/internal/w3ctrace"
)

const service = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"

// What came with a start as its meta is the sender's own: only a sound traceparent is taken.
func TestMalformedParentsAreIgnored(t *testing.T) {
	require.Equal(t, service, w3ctrace.InMeta(w3ctrace.Meta(service)))
	require.Equal(t, service, w3ctrace.InMeta(json.RawMessage(`{"ticket":"T-9","traceparent":"`+service+`"}`)))
	require.Nil(t, w3ctrace.Meta(""))
	for _, meta := range []string{
		``, `null`, `7`, `{}`, `{"traceparent":7}`, `{"traceparent":""}`, `{"traceparent":"` + strings.ToUpper(service) + `"}`, `{"traceparent":"` + service + ` "}`,
		`{"traceparent":"01` + service[2:] + `"}`, `{"traceparent":"00-` + strings.Repeat("0", 32) + service[35:] + `"}`,
		`{"traceparent":"` + service[:36] + strings.Repeat("0", 16) + `-01"}`,
	} {
		require.Empty(t, w3ctrace.InMeta(json.RawMessage(meta)), meta)
	}
}
