package loop

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// A state with a member that this build does not know is not read, wherever the member is: a newer build
// wrote it, and what it says would be lost.
func TestAStateWithAnUnknownMember(t *testing.T) {
	whole := played(t, "begin go", `opened {"tools":["ask_user"]}`, `calls ask_user {"question":"Where to?"}`).state
	raw, err := json.Marshal(whole)
	require.NoError(t, err)
	same, err := ReadState(raw)
	require.NoError(t, err)
	require.True(t, reflect.DeepEqual(whole.Requests, same.Requests))
	for _, where := range []string{`{`, `"turn":{`, `"open":[{`} {
		require.Contains(t, string(raw), where)
		_, err := ReadState([]byte(strings.Replace(string(raw), where, where+`"later":1,`, 1)))
		require.ErrorIs(t, err, agent.CodeIncompatible, where)
		require.ErrorContains(t, err, `"later"`)
	}
	_, err = ReadState([]byte(`{"v":2}`))
	require.ErrorIs(t, err, agent.CodeIncompatible)
}
