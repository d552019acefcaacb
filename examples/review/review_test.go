package review_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/devserver"
	"github.com/fermata-agents/fermata/examples/review"
	"github.com/fermata-agents/fermata/testsuite"
)

func merge(context.Context, int, string) error { return nil }

func TestAChangeIsReviewed(t *testing.T) {
	script := testsuite.NewScript(
		testsuite.Reply{Match: "^Review the security", Text: `{"risk":"high","says":["it logs the key"]}`},
		testsuite.Reply{Match: "^Review the", Text: `{"risk":"low","says":[]}`, Repeat: 4},
	)
	s := testsuite.New(t, &testsuite.Options{Worker: review.Options(merge), Model: script, Server: devserver.ForTest(t).Client(t)})
	run := s.Start("review", `{"number":7,"diff":"+ log.Print(key)"}`, nil)
	if q := run.Suspended().Requests[0]; q.Type == agent.RequestQuestion { // security was among the first three
		require.Equal(t, "author", q.Step)
		run.Answer("It is the public one.")
	}
	require.Equal(t, "Merge change 7?", run.Suspended().Requests[0].Text)
	run.Approve()
	var r review.Report
	require.NoError(t, run.Completed().Decode(&r))
	require.True(t, r.Merged)
	require.GreaterOrEqual(t, len(r.Findings), 3)
}

func TestNobodyApproves(t *testing.T) {
	script := testsuite.NewScript(testsuite.Reply{Match: "^Review the", Text: `{"risk":"low","says":[]}`, Repeat: 5})
	s := testsuite.New(t, &testsuite.Options{Worker: review.Options(merge), Model: script, Server: devserver.ForTest(t).Client(t)})
	run := s.Start("review", `{"number":8,"diff":"+ x"}`, nil)
	run.Suspended()
	s.FastForward(7 * 24 * time.Hour)
	var r review.Report
	require.NoError(t, run.Completed().Decode(&r))
	require.False(t, r.Merged)
}
