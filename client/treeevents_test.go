package client

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

func TestTreeCursor(t *testing.T) {
	read := []treePlace{
		{Session: "s", Seq: 1}, {Session: "s/a-1", Run: "r1"}, {Session: "s", Seq: 2},
		{Session: "s/b-2", Run: "r2"}, {Session: "s/a-1", Run: "r1", Seq: 9},
		{Session: "s/b-2", Run: "r2", Seq: 4, ended: true}, {Session: "s", Seq: 7},
	}
	again, err := treePlaces("s", treeCursor(read))
	require.NoError(t, err)
	require.Equal(t, []treePlace{{Session: "s", Seq: 7}, {Session: "s/a-1", Run: "r1", Seq: 9}}, again)

	again, err = treePlaces("s", "")
	require.NoError(t, err)
	require.Equal(t, []treePlace{{Session: "s"}}, again)
}

// A cursor comes back from a browser or a file: whoever changed it reads no other session.
func TestAForeignTreeCursorIsRefused(t *testing.T) {
	encoded := func(json string) string { return base64.RawURLEncoding.EncodeToString([]byte(json)) }
	for name, cursor := range map[string]string{
		"another session's":        treeCursor([]treePlace{{Session: "t", Seq: 1}}),
		"a neighbour below":        treeCursor([]treePlace{{Session: "s"}, {Session: "t/a-1"}}),
		"a name that only begins":  treeCursor([]treePlace{{Session: "s"}, {Session: "st"}}),
		"a path out of it":         treeCursor([]treePlace{{Session: "s"}, {Session: "s/../t"}}),
		"a negative number":        treeCursor([]treePlace{{Session: "s", Seq: -1}}),
		"one run at the top":       treeCursor([]treePlace{{Session: "s", Run: "r"}}),
		"of one session alone":     agent.Cursor(7),
		"no base64":                "%",
		"no JSON":                  encoded("s"),
		"no places":                encoded("[]"),
		"more than a tree's names": encoded(`[{"s":"s"}` + strings.Repeat(`,{"s":"s/a-1"}`, maxTreeCursor/14) + "]"),
	} {
		_, err := treePlaces("s", cursor)
		require.ErrorIs(t, err, agent.CodeInvalidInput, name)
	}
}
